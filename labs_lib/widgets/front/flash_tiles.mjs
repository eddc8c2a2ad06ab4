// Lab 11: tiles of queries and keys. Bytes are added load by load and store by store, tile by tile.

const CAUSAL = "causal";
const [NARROW_BYTES, WIDE_BYTES] = [2, 4]; // of a number of q, k, v, o; of a score, m, l, lse

// The tiles in the order in which they are worked on, as rows of {i, j, queries, keys}.
function tiles_of({ tokens, block_q, block_k, mask }) {
  const rows = [];
  let all = 0;
  for (let i = 0; i < tokens; i += block_q) {
    const queries = Math.min(block_q, tokens - i);
    const row = [];
    for (let j = 0; j < tokens; j += block_k, all++) {
      const unseen = mask === CAUSAL && j > i + queries - 1;
      if (!unseen) row.push({ i, j, queries, keys: Math.min(block_k, tokens - j) });
    }
    rows.push(row);
  }
  return { rows, all, done: rows.reduce((sum, row) => sum + row.length, 0) };
}

// The bytes that have crossed when `at` tiles have been worked on.
function crossed({ rows }, head_dim, at) {
  let bytes = 0;
  const move = (numbers, size) => (bytes += numbers * size);
  for (const row of rows) {
    for (const tile of row) {
      if (at-- <= 0) return bytes;
      if (tile === row[0]) move(tile.queries * head_dim, NARROW_BYTES); // q comes
      move(tile.keys * head_dim, NARROW_BYTES); // k comes
      move(tile.keys * head_dim, NARROW_BYTES); // v comes
      if (tile === row.at(-1)) {
        move(tile.queries * head_dim, NARROW_BYTES); // o goes
        move(tile.queries, WIDE_BYTES); // lse goes
      }
    }
  }
  return bytes;
}

// The same with whole matrices: each is written to memory and read back, row by row.
function crossed_whole(tokens, head_dim) {
  const [read_q, read_k, read_v, write_o] = Array(4).fill(head_dim);
  const [write_scores, read_scores, write_weights, read_weights] = Array(4).fill(tokens);
  const moves = [read_q, read_k, write_scores, read_scores, write_weights, read_weights];
  let bytes = 0;
  for (const numbers of [...moves, read_v, write_o]) {
    for (let row = 0; row < tokens; row++) bytes += numbers * NARROW_BYTES;
  }
  return bytes;
}

// What lies on the chip with a tile: [name, bytes, whether it came from memory].
function on_chip({ block_q, block_k }, head_dim) {
  return [
    ["q", block_q * head_dim * NARROW_BYTES, true],
    ["k", block_k * head_dim * NARROW_BYTES, true],
    ["v", block_k * head_dim * NARROW_BYTES, true],
    ["scores", block_q * block_k * WIDE_BYTES, false],
    ["o", block_q * head_dim * WIDE_BYTES, false],
    ["m, l", block_q * 2 * WIDE_BYTES, false],
  ];
}

function draw_tile_map(pen, field, s, tiles, at) {
  const [down, across] = [tiles.rows.length, tiles.all / tiles.rows.length];
  const { colours, theme } = pen;
  const paper = rgb(theme.paper);
  const [done, now, later] = [rgb(colours[0]), rgb(colours[1]), rgb(theme.faint)];
  const shades = Array(down * across).fill(paper);
  let number = 0;
  let here = null;
  tiles.rows.forEach((row, i) => row.forEach((tile) => {
    const place = i * across + tile.j / s.block_k;
    shades[place] = ++number < at ? done : number === at ? now : later;
    if (number === at) here = [i, tile.j / s.block_k];
  }));
  pen.cells(field.left, field.top, field.width, field.height, down, across, (i) => shades[i]);
  const scale = pen.axes(field, {
    x: [0, across], y: [down, 0], title: `Tile ${at} of ${tiles.done}: one at a time is on the chip`,
    x_label: `tiles of ${s.block_k} keys`, y_label: `tiles of ${s.block_q} queries`,
  });
  const right = field.left + field.width;
  const bottom = field.top + field.height;
  if (field.height / down > 5) {
    for (let i = 0; i <= down; i++) pen.line([[field.left, scale.y(i)], [right, scale.y(i)]], theme.paper);
  }
  if (field.width / across > 5) {
    for (let j = 0; j <= across; j++) pen.line([[scale.x(j), field.top], [scale.x(j), bottom]], theme.paper);
  }
  if (here && (field.height / down <= 5 || field.width / across <= 5)) mark(pen, scale, here);
  const never = tiles.all - tiles.done;
  const named = [
    [`done ${Math.max(0, at - 1)}`, colours[0]],
    ["on the chip", colours[1]],
    [`to come ${tiles.done - at}`, theme.faint],
    ...(never ? [[`never ${never}`, tint(theme.ink, theme.paper, 0.08)]] : []),
  ];
  pen.legend(field.left, bottom + 56, named);
}

// A tile that is too small to be seen is pointed at.
function mark(pen, scale, [i, j]) {
  const [x, y] = [scale.x(j + 0.5), scale.y(i + 0.5)];
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    pen.line([[x + 4 * dx, y + 4 * dy], [x + 14 * dx, y + 14 * dy]], pen.colours[1], 2);
  }
}

function draw_crossings(pen, field, whole, all, soon) {
  const bars = [
    ["whole", whole, pen.theme.grey], ["tiles", all, pen.colours[0]], ["so far", soon, pen.colours[1]],
  ];
  const most = 1.15 * Math.max(whole, all);
  const scale = pen.axes(field, {
    x: [0, 3], y: [0, most / 1e6], grid: true, title: "Bytes that cross, MB, one head",
    x_ticks: bars.map(([name], i) => [i + 0.5, name]),
  });
  bars.forEach(([, bytes, colour], i) => {
    const top = scale.y(bytes / 1e6);
    const [left, wide] = [scale.x(i + 0.2), scale.x(0.6) - scale.x(0)];
    pen.box(left, top, wide, scale.y(0) - top, colour);
    pen.text(`${general(bytes / 1e6, 3)} MB`, scale.x(i + 0.5), top - 9, { align: "center", size: 12 });
  });
}

// A bar of what lies on the chip; its parts are named and numbered.
function draw_chip(pen, field, parts) {
  const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  const { left, top, width } = field;
  const words = `On the chip: ${general(total / 1024, 4)} KiB`;
  pen.text(words, left, top - 14, { bold: true, size: 14, most: width });
  let x = left;
  parts.forEach(([, bytes], i) => {
    const wide = (bytes / total) * width;
    pen.box(x, top, wide, 18, pen.colours[i], pen.theme.paper);
    x += wide;
  });
  const columns = pen.narrow ? 3 : 2;
  parts.forEach(([name, bytes, came], i) => {
    const [column, row] = [i % columns, Math.floor(i / columns)];
    const at = [left + (column * width) / columns, top + 36 + row * 20];
    const where = came ? "" : " float32";
    pen.legend(...at, [[`${name} ${general(bytes / 1024, 4)} KiB${where}`, pen.colours[i]]]);
  });
}

function tile_sentence(s, head_dim, tiles, at, [whole, all, soon], chip) {
  const never = tiles.all - tiles.done;
  const skipped = never ? `, ${never} of ${tiles.all} are left out` : "";
  const tile = tiles.rows.flat()[at - 1];
  const where = tile ? `Queries from ${tile.i} on meet keys from ${tile.j} on` : "No tile yet";
  const total = chip.reduce((sum, [, bytes]) => sum + bytes, 0);
  return (
    `${many(s.n_head, "head")} of ${head_dim}. ${where}${skipped}. ` +
    `On the chip: ${general(total / 1024, 4)} KiB.\n` +
    `${general(soon / 1e6, 3)} MB have crossed, ${general(all / 1e6, 3)} MB a head ` +
    `will; whole matrices move ${general(whole / all, 2)} times as much.`
  );
}

export default explorer({
  height: (width) => (width < 700 ? 620 : 400),
  limits: (s) => ({ step: [0, tiles_of(s).done] }),
  draw(pen, s) {
    const tiles = tiles_of(s);
    const head_dim = s.d_model / s.n_head;
    const bytes = [
      crossed_whole(s.tokens, head_dim),
      crossed(tiles, head_dim, tiles.done),
      crossed(tiles, head_dim, s.step),
    ];
    const chip = on_chip(s, head_dim);
    const half = pen.narrow ? pen.width - 90 : 0.55 * pen.width - 70;
    draw_tile_map(pen, { left: 70, top: 34, width: half, height: pen.narrow ? 210 : 280 }, s, tiles, s.step);
    const left = pen.narrow ? 70 : 70 + half + 70;
    const [top, chip_top] = pen.narrow ? [350, 548] : [34, 306];
    draw_crossings(pen, { left, top, width: pen.width - left - 12, height: pen.narrow ? 130 : 200 }, ...bytes);
    draw_chip(pen, { left: pen.narrow ? 16 : left - 40, top: chip_top, width: pen.width - (pen.narrow ? 16 : left - 40) - 12 }, chip);
    return tile_sentence(s, head_dim, tiles, s.step, bytes, chip);
  },
});
