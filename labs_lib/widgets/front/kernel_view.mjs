// Lab 09: a kernel's trace, played: which lanes of a warp touch which bytes, what comes along, which
// banks clash, and the line of the source that does it.

const [LANES, BANKS, WORD, SECTOR_BYTES, WORDS_A_ROW] = [32, 32, 4, 32, 32];
const [SOURCE_TOP, SOURCE_HIGH] = [122, 216];
const NOTHING = [["none", "none"]];

// What Python sent: once, or for the n_head and d_model that a function made it for.
function played(model) {
  const found = model.get("data") ?? model.get("own");
  return found?.warps ? found : { warps: [], sites: [], whole: {}, source: "", grid: [1, 1, 1] };
}

const _requests = new WeakMap();
function requests_of(trace, { block, warp }) {
  const whose = trace.warps.find(([b, w]) => b === block && w === warp);
  if (!whose) return [];
  if (!_requests.has(trace)) _requests.set(trace, new Map());
  const known = _requests.get(trace);
  const key = `${block} ${warp}`;
  if (!known.has(key)) {
    const [numbers, [, , start, count]] = [floats(trace.steps, Int32Array), whose];
    const wide = 3 + LANES;
    known.set(key, Array.from({ length: count }, (_, i) => {
      const [site, size, step, ...offsets] = numbers.slice((start + i) * wide, (start + i + 1) * wide);
      const lanes = offsets.map((at, lane) => [lane, at]).filter(([, at]) => at >= 0);
      return request_of(trace.sites[site], size, step, lanes);
    }));
  }
  return known.get(key);
}

// Every piece of `size` bytes that the bytes [from, from + count) lie in.
function pieces(from, count, size) {
  const found = [];
  for (let at = Math.floor(from / size); at * size < from + count; at++) found.push(at);
  return found;
}

function request_of([line, what, name, shared, item, phase], size, step, lanes) {
  const words = new Map(); // word -> its lanes
  const sectors = new Set();
  const bytes = new Set();
  for (const [lane, at] of lanes) {
    for (const word of pieces(at + phase, size, WORD)) {
      words.set(word, [...(words.get(word) ?? []), lane]);
    }
    for (const sector of pieces(at + phase, size, SECTOR_BYTES)) sectors.add(sector);
    for (let byte = at; byte < at + size; byte++) bytes.add(byte);
  }
  const parts = parts_of(lanes, size);
  const banks = new Map(); // bank -> how many different words are wanted of it at once
  for (const part of parts) {
    for (const [bank, count] of part) banks.set(bank, Math.max(count, banks.get(bank) ?? 0));
  }
  const passes = parts.reduce((sum, part) => sum + Math.max(0, ...part.values()), 0);
  const rows = [...new Set([...words.keys()].map((word) => Math.floor(word / WORDS_A_ROW)))];
  rows.sort((a, b) => a - b);
  const site = { line, what, name, shared, item, phase };
  return { ...site, size, step, lanes, words, sectors, bytes: bytes.size, banks, passes, rows };
}

// Wide accesses go by parts of a warp; for each part, how many words are wanted of each bank.
function parts_of(lanes, size) {
  const together = size <= 4 ? LANES : size <= 8 ? LANES / 2 : LANES / 4;
  const parts = [];
  for (let start = 0; start < LANES; start += together) {
    const mine = lanes.filter(([lane]) => lane >= start && lane < start + together);
    const words = new Set(mine.flatMap(([, at]) => pieces(at, size, WORD)));
    const part = new Map();
    for (const word of words) part.set(word % BANKS, (part.get(word % BANKS) ?? 0) + 1);
    parts.push(part);
  }
  return parts;
}

function request_title(one) {
  const alone = one.lanes.length === 1;
  const verb = one.what === "read" || one.what === "write" ? one.what : "add";
  const who = `${alone ? "One lane" : `${one.lanes.length} lanes`} ${verb}${alone ? "s" : ""}`;
  const what = one.shared ? many(one.passes, "pass") : many(one.sectors.size, "sector");
  return `${who} ${one.name}: ${what}`;
}

function place_words(linear, [wide, high, deep]) {
  const place = [linear % wide, Math.floor(linear / wide) % high, Math.floor(linear / (wide * high))];
  const used = Math.max(1, ...[wide, high, deep].map((size, i) => (size > 1 ? i + 1 : 0)));
  return used === 1 ? String(place[0]) : `(${place.slice(0, used).join(", ")})`;
}

function where_words(trace, s, steps, one) {
  const lane = one.lanes[0][0];
  const thread = place_words(s.warp * LANES + lane, trace.threads);
  const when = ["before any barrier", "after 1 barrier"][one.step] ?? `after ${one.step} barriers`;
  return (
    `Step ${fixed(s.step, 0)} of ${fixed(steps, 0)} of warp ${s.warp} in block ${s.block}, ` +
    `${when}; lane ${lane} is thread ${thread}.`
  );
}

function what_words(one) {
  const line = one.line ? `Line ${one.line}` : "A line that isn't known";
  const verb = { read: "reads", write: "writes" }[one.what] ?? "changes in one piece";
  const start = `${line} ${verb} ${one.name}: ${many(one.lanes.length, "lane")} of ${one.size} bytes`;
  if (!one.shared) {
    const moved = SECTOR_BYTES * one.sectors.size;
    return (
      `${start}; ${many(one.sectors.size, "sector")} of ${SECTOR_BYTES} bytes, ` +
      `${moved} bytes moved for ${one.bytes} wanted.`
    );
  }
  if (one.passes === 1) return `${start}; one pass through the banks, no two words of one bank.`;
  const [worst, count] = [...one.banks].reduce((most, bank) => (bank[1] > most[1] ? bank : most));
  if (count === 1) {
    return `${start}; ${one.passes} passes, as lanes of ${one.size} bytes go by parts of a warp.`;
  }
  return `${start}; ${one.passes} passes: ${count} different words lie in bank ${worst}.`;
}

// Rows of 32 words: a line of memory, or a word of each bank. The cells hold the lanes.
function draw_memory_rows(pen, field, one) {
  const { left, top, width } = field;
  const high = row_height(one.rows.length);
  const cell = width / WORDS_A_ROW;
  const fetched = tint(pen.colours[0], pen.theme.paper, 0.18);
  const empty = tint(pen.theme.ink, pen.theme.paper, 0.05);
  const along = new Set(one.shared ? [] : [...one.sectors].flatMap((s) => pieces(s * SECTOR_BYTES, SECTOR_BYTES, WORD)));
  pen.text(request_title(one), left, top - 14, { bold: true, size: 14, most: width });
  one.rows.forEach((row, i) => {
    const y = top + i * high;
    const at = row * WORDS_A_ROW * WORD;
    const label = one.shared
      ? `${one.name} + ${at}`
      : `${one.name}[${Math.floor(Math.max(0, at - one.phase) / one.item)}]`;
    pen.text(label, left - 6, y + high / 2, { align: "right", size: 11, most: left - 8 });
    for (let column = 0; column < WORDS_A_ROW; column++) {
      const word = row * WORDS_A_ROW + column;
      const lanes = one.words.get(word);
      const clash = one.shared && one.banks.get(column) > 1;
      const touched = clash ? pen.colours[5] : pen.colours[lanes?.length > 1 ? 2 : 0];
      const colour = lanes ? touched : along.has(word) ? fetched : empty;
      const x = left + column * cell;
      pen.box(x, y, cell - 1, high - 1, colour);
      if (!lanes) continue;
      const words = lanes.length > 1 ? `×${lanes.length}` : lanes[0];
      const size = high < 14 || cell < 18 ? 9 : 11;
      const ink = { align: "center", size, colour: ink_on(colour), most: cell - 1 };
      pen.text(words, x + cell / 2, y + high / 2, ink);
    }
  });
  draw_columns(pen, field, one, one.rows.length * high, cell);
}

function row_height(rows) {
  return rows > 20 ? 13 : 20;
}

// Below the rows: the number of the word or bank, and how many words a bank that clashes owes.
function draw_columns(pen, { left, top, width }, one, high, cell) {
  const small = { align: "center", size: 11, base: "top" };
  for (let column = 0; column < WORDS_A_ROW; column += cell < 18 ? 4 : 2) {
    pen.text(column, left + (column + 0.5) * cell, top + high + 4, small);
  }
  if (!one.shared) {
    for (let at = 0; at <= WORDS_A_ROW; at += SECTOR_BYTES / WORD) {
      const x = left + at * cell - 0.5;
      pen.line([[x, top], [x, top + high]], pen.theme.ink, 1.2);
    }
  }
  for (const [bank, count] of one.shared ? one.banks : []) {
    if (count < 2) continue;
    const ink = { ...small, colour: pen.colours[5], bold: true };
    pen.text(count, left + (bank + 0.5) * cell, top + high + 18, ink);
  }
  const words = one.shared
    ? "bank; in the cells: the lane; below: words wanted of one bank at once"
    : "word of 4 bytes; between lines: a sector; in the cells: the lane";
  pen.text(words, left + width / 2, top + high + 34, { align: "center", base: "top", size: 12, most: width });
}

// Where this is: the block in its grid, and the lanes among the block's threads.
function draw_where(pen, top, trace, s, one) {
  const [gx, gy, gz] = trace.grid;
  const [tx, ty, tz] = trace.threads;
  const size = 74;
  const [here, later] = [rgb(pen.colours[1]), rgb(pen.theme.faint)];
  const [x, y, z] = s.block.match(/\d+/g).map(Number);
  const place = x + gx * (y + gy * z);
  const rows = gy * gz;
  const wide = Math.min(pen.width / 2 - 40, Math.max(size, gx * 6));
  pen.text(`Block ${s.block} of a grid of ${[gx, gy, gz].join(" × ")}`, 12, top, { bold: true, most: pen.width / 2 - 24 });
  pen.cells(12, top + 14, wide, size, rows, gx, (i) => (i === place ? here : later));
  mark_cell(pen, 12, top + 14, wide / gx, size / rows, x, Math.floor(place / gx));
  const left = pen.width / 2;
  const lanes = new Set(one.lanes.map(([lane]) => s.warp * LANES + lane));
  const warp = rgb(tint(pen.colours[1], pen.theme.paper, 0.35));
  const shade = (i) => (lanes.has(i) ? here : Math.floor(i / LANES) === s.warp ? warp : later);
  const broad = Math.min(pen.width / 2 - 20, Math.max(size, tx * 8));
  pen.text(`Warp ${s.warp}: ${many(lanes.size, "lane")} of ${[tx, ty, tz].join(" × ")} threads`, left, top, { bold: true, most: pen.width / 2 - 12 });
  pen.cells(left, top + 14, broad, size, ty * tz, tx, shade);
}

// A block of a large grid is a point: a frame shows where it is.
function mark_cell(pen, left, top, wide, high, column, row) {
  if (wide > 5 && high > 5) return;
  const [x, y] = [left + (column + 0.5) * wide, top + (row + 0.5) * high];
  pen.frame(x - 6, y - 6, 12, 12, pen.colours[1], 1.5);
}

// The line of a step, and as many above and below it as there is room for.
function draw_lines(pen, top, source, line, around) {
  const known = source.trim() && line;
  const why = source.trim() ? "its line is not known" : "this copy keeps the source back";
  const title = known ? `Line ${line} of the source` : line ? `Line ${line}: ${why}` : why;
  pen.text(title, 12, top, { bold: true, size: 14 });
  if (!known) return;
  const lines = source.split("\n");
  const first = Math.max(0, Math.min(line - 1 - around, lines.length - 2 * around - 1));
  lines.slice(first, first + 2 * around + 1).forEach((text, i) => {
    const [y, own] = [top + 22 + i * 17, first + i === line - 1];
    if (own) pen.box(6, y - 8, pen.width - 12, 17, tint(pen.colours[1], pen.theme.paper, 0.18));
    pen.on.save();
    pen.on.beginPath();
    pen.on.rect(6, y - 9, pen.width - 12, 18);
    pen.on.clip();
    const mono = { ...pen.theme, font: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" };
    const number_of = String(first + i + 1).padStart(3);
    const typewriter = { __proto__: pen, theme: mono };
    typewriter.text(`${number_of}  ${text}`, 12, y, { size: 12, bold: own });
    pen.on.restore();
  });
}

// As much room for rows of memory as the warp's tallest step needs, so that nothing jumps.
function tallest(requests) {
  return Math.max(1, ...requests.map(({ rows }) => rows.length * row_height(rows.length))) + 60;
}

export default explorer({
  height(width, s, model) {
    const requests = requests_of(played(model), s);
    return requests.length ? SOURCE_TOP + SOURCE_HIGH + tallest(requests) + 6 : 60;
  },
  asks: (s, model) => !model.get("data"),
  lists: {
    block(s, model) {
      const blocks = [...new Set(played(model).warps.map(([block]) => block))];
      return blocks.length ? blocks.map((block) => [block, block]) : NOTHING;
    },
    warp(s, model) {
      const mine = played(model).warps.filter(([block]) => block === s.block);
      return mine.length ? mine.map(([, warp]) => [String(warp), warp]) : NOTHING;
    },
  },
  limits: (s, model) => ({ step: [1, Math.max(1, requests_of(played(model), s).length)] }),
  draw(pen, s, model) {
    const trace = played(model);
    const requests = requests_of(trace, s);
    const one = requests[s.step - 1];
    if (!one) {
      pen.text("nothing was touched", 12, 30);
      return "No thread of this launch touched a tensor or shared memory.";
    }
    draw_where(pen, 12, trace, s, one);
    const label = Math.min(150, 14 + pen.wide(`${one.name}[000000]`, 11));
    draw_memory_rows(pen, { left: label, top: SOURCE_TOP + SOURCE_HIGH, width: pen.width - label - 10 }, one);
    draw_lines(pen, SOURCE_TOP, trace.source, one.line, 4);
    const told = [where_words(trace, s, requests.length, one), what_words(one)];
    if (s.step === requests.length && !trace.whole[s.block]) {
      told.push("The record ends here; the kernel goes on. k.trace.steps(most=...) keeps more.");
    }
    return told.join("\n");
  },
});
