// Lab 06: every head of a model, and one of them on a sentence. All that is recorded came from
// Python once; what the model says without a head, Python asks it.

const HEAD_SILENT = "is silent";
const WEIGHT_OF_ONE = 65535; // weights come as whole shares of it
const TOKEN_ROOM = 78; // pixels for the words beside a map
const TALLEST_LAYERS = 12; // more of them get lower cells

const _atlas = new WeakMap();
function heads_of(model, name) {
  if (!_atlas.has(model)) {
    const found = Object.entries(model.get("data")).map(([key, facts]) => {
      const marked = Object.entries(facts.marked).map(([role, mask]) => [role, floats(mask, Uint8Array)]);
      const shares = floats(facts.weights, Uint16Array);
      return [key, { ...facts, shares, marked: Object.fromEntries(marked), seq: facts.tokens.length }];
    });
    _atlas.set(model, Object.fromEntries(found));
  }
  return _atlas.get(model)[name];
}

function is_head(facts, { layer, head }) {
  return layer < facts.n_layer && head < facts.n_head;
}

// What a token gives to each, as shares of WEIGHT_OF_ONE.
function given_row(facts, { layer, head }, place) {
  const start = ((layer * facts.n_head + head) * facts.seq + place) * facts.seq;
  return facts.shares.subarray(start, start + facts.seq);
}

// A row's largest weights in words.
function row_reading(tokens, row, place) {
  const order = [...row.keys()].sort((a, b) => row[b] - row[a] || a - b);
  const told = order.slice(0, 3).filter((key) => row[key] >= 0.005);
  const gives = (told.length ? told : order.slice(0, 1)).map(
    (key) => `${fixed(row[key], 2)} to “${tokens[key].trim()}” (${key})`,
  );
  return `Here “${tokens[place].trim()}” (${place}) gives ${gives.join(", ")}.`;
}

function score_words(facts, { role, layer, head }) {
  const scores = facts.scores[role];
  if (!scores) return `It sees only what came before, so no head can look at the ${role} token.`;
  return (
    `Head ${head} of layer ${layer} gives ${fixed(scores[layer][head], 2)}; ` +
    `by chance it would be ${fixed(facts.chance[role], 2)}.`
  );
}

function output_words(facts, { it, own }) {
  if (it !== HEAD_SILENT) return facts.missing || "Let it be silent to see the output move.";
  if (facts.missing || !own) return facts.missing;
  if (own.why) return own.why;
  const moved = own.now.map((value, i) => Math.abs(value - own.whole[i]));
  const most = moved.indexOf(Math.max(...moved));
  return `Silent, it moves the output by at most ${fixed(moved[most], 3)}, at “${own.names[most].trim()}”.`;
}

function atlas_sentence(facts, s) {
  let size = `${facts.title}: ${facts.n_layer} layers, d_model ${facts.d_model}, n_head ${facts.n_head}`;
  if (facts.n_kv_head !== facts.n_head) size += ` (${facts.n_kv_head} for keys and values)`;
  if (!is_head(facts, s)) {
    return (
      `${size}. There is no head ${s.head} in layer ${s.layer}: layers are 0 to ` +
      `${facts.n_layer - 1}, heads 0 to ${facts.n_head - 1}.`
    );
  }
  const row = [...given_row(facts, s, s.place)].map((share) => share / WEIGHT_OF_ONE);
  const cost = facts.costs[s.layer][s.head];
  const rise = `${cost < 0 ? "-" : "+"}${fixed(Math.abs(cost), 3)}`;
  return [
    `${size}. ${score_words(facts, s)}`,
    row_reading(facts.tokens, row, s.place),
    `Recorded: silent, it costs ${rise} nats. ${output_words(facts, s)}`.trim(),
  ].join("\n");
}

// Where everything stands: two columns, or one below the other.
function atlas_fields(width, facts) {
  const stacked = width < 700;
  const [wide, high] = [24, facts.n_layer > TALLEST_LAYERS ? 14 : 24];
  const grid = { left: 48, top: 42, width: facts.n_head * wide, height: facts.n_layer * high };
  const under = grid.top + grid.height + 84;
  const left = (stacked ? 24 : grid.left + grid.width + 36) + TOKEN_ROOM;
  const cell = Math.min(24, (width - left - 10) / facts.seq);
  const size = cell * facts.seq;
  const map = { left, top: stacked ? under + 30 : grid.top, width: size, height: size };
  const below = Math.max(under, map.top + size + TOKEN_ROOM + 14) + 28;
  const across = stacked ? width - 200 : 0.54 * width - 190;
  const output = { left: 186, top: below, width: across, height: 24 * facts.names.length };
  const costs = stacked
    ? { left: 60, top: below + output.height + 100, width: width - 76, height: 100 }
    : { left: 0.54 * width + 66, top: below, width: 0.46 * width - 78, height: output.height };
  return { grid, map, output, costs, cell: { wide, high, size: cell } };
}

function share_in_cell(pen, share, x, y, size) {
  pen.text(fixed(100 * share, 0), x, y, { size, align: "center", colour: ink_on(cividis(share)) });
}

// A cell for every head; its number is the percentage.
function draw_heads(pen, { grid, cell }, facts, s) {
  const scores = facts.scores[s.role];
  const layers = facts.n_layer > TALLEST_LAYERS ? 2 : 1;
  const every = (count, step) => [...Array(count).keys()].filter((i) => i % step === 0);
  const middles = (count, step = 1) => every(count, step).map((i) => [i + 0.5, i]);
  if (!scores) return pen.text(`no head can look at the ${s.role} token`, grid.left, grid.top + 20);
  const all = scores.flat();
  pen.cells(grid.left, grid.top, grid.width, grid.height, facts.n_layer, facts.n_head, (i) => cividis(all[i]));
  const scale = pen.axes(grid, {
    x: [0, facts.n_head], y: [facts.n_layer, 0], x_label: "head", y_label: "",
    x_ticks: middles(facts.n_head), y_ticks: middles(facts.n_layer, layers),
    title: `${facts.title}: % of weight on "${s.role}"`,
  });
  pen.text("layer", 10, grid.top + grid.height / 2, { align: "center", turn: -90 });
  const size = cell.high < 20 ? 10 : 12;
  all.forEach((share, i) => {
    const [layer, head] = [Math.floor(i / facts.n_head), i % facts.n_head];
    share_in_cell(pen, share, scale.x(head + 0.5), scale.y(layer + 0.5), size);
  });
  if (is_head(facts, s)) {
    pen.frame(scale.x(s.head), scale.y(s.layer), cell.wide, cell.high, pen.theme.paper, 5);
    pen.frame(scale.x(s.head), scale.y(s.layer), cell.wide, cell.high, pen.colours[1], 2.5);
  }
  pen.shades(grid.left + 102, grid.top + grid.height + 50, grid.width - 116, 0, 100, "% of weight");
}

// One head's weights on the sentence; small frames are where the role would look.
function draw_head(pen, { map, cell }, facts, s) {
  const { seq, tokens } = facts;
  const start = (s.layer * facts.n_head + s.head) * seq * seq;
  const share = (i) => facts.shares[start + i] / WEIGHT_OF_ONE;
  pen.cells(map.left, map.top, map.width, map.height, seq, seq, (i) => cividis(share(i)));
  pen.axes(map, { x: [0, seq], y: [seq, 0], x_ticks: [], y_ticks: [], title: `Head ${s.head} of layer ${s.layer} on a sentence` });
  const bottom = map.top + map.height;
  const number_size = cell.size < 20 ? 9 : 10;
  for (let i = 0; i < seq * seq; i++) {
    const [row, column] = [Math.floor(i / seq), i % seq];
    const [x, y] = [map.left + column * cell.size, map.top + row * cell.size];
    if (facts.causal && column > row) {
      pen.box(x, y, cell.size + 0.5, cell.size + 0.5, pen.theme.paper);
      pen.hatch(x, y, cell.size, cell.size);
      continue;
    }
    const ink = ink_on(cividis(share(i)));
    if (facts.marked[s.role][i]) pen.frame(x + 2, y + 2, cell.size - 4, cell.size - 4, ink, 1);
    if (share(i) >= 0.005) share_in_cell(pen, share(i), x + cell.size / 2, y + cell.size / 2, number_size);
  }
  tokens.forEach((token, i) => {
    const [at, bold] = [(i + 0.5) * cell.size, i === s.place];
    const most = TOKEN_ROOM - 8;
    pen.text(token.trim(), map.left - 6, map.top + at, { align: "right", size: 12, bold, most });
    pen.text(token.trim(), map.left + at, bottom + 6, { align: "right", size: 12, turn: -60, most });
  });
  const under = { align: "center", base: "top", most: map.width };
  pen.text(`the token it looks at; framed: "${s.role}"`, map.left + map.width / 2, bottom + TOKEN_ROOM - 8, under);
  pen.frame(map.left, map.top + s.place * cell.size, map.width, cell.size, pen.colours[1], 2.5);
}

// What the model says with all heads, and without this one once Python has asked.
function draw_said(pen, field, facts, { it, own }) {
  const names = own?.names ?? facts.names;
  const whole = own?.whole ?? facts.said;
  const low = Math.min(0, ...whole, ...(own?.now ?? []));
  const scale = pen.axes(field, {
    x: [low, 1], y: [names.length, 0], y_ticks: names.map((name, i) => [i + 0.5, name.trim()]),
    x_label: facts.unit, title: "",
  });
  pen.text(facts.asked, 12, field.top - 14, { bold: true, size: 14, most: pen.width - 24 });
  const bar = (value, y, colour) => {
    const [from, to] = [scale.x(0), scale.x(value)];
    pen.box(Math.min(from, to), y, Math.abs(to - from), 9, colour);
    const end = Math.max(from, to) + 4;
    pen.text(fixed(value, 3), Math.min(end, field.left + field.width - 30), y + 4, { size: 10 });
  };
  whole.forEach((value, i) => {
    const y = scale.y(i);
    bar(value, own?.now ? y + 2 : y + 7, pen.colours[0]);
    if (own?.now) bar(own.now[i], y + 13, pen.colours[1]);
  });
  pen.line([[scale.x(0), field.top], [scale.x(0), field.top + field.height]]);
  const silent = own?.now ? [["it is silent", pen.colours[1]]] : [];
  pen.legend(12, field.top + field.height + 52, [["all heads speak", pen.colours[0]], ...silent]);
}

// What silence costs, head by head: this one among all.
function draw_costs(pen, field, facts, { layer, head }) {
  const all = facts.costs.flat();
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const counts = Array(40).fill(0);
  all.forEach((cost) => counts[Math.min(39, Math.floor(((cost - low) / (high - low)) * 40))]++);
  const scale = pen.axes(field, {
    x: [low, high], y: [0, Math.max(...counts)], x_label: "rise of the loss (nats)", y_label: "heads",
    title: "What silence costs (recorded)",
  });
  counts.forEach((count, i) => {
    const [left, right] = [i, i + 1].map((edge) => scale.x(low + (edge / 40) * (high - low)));
    pen.box(left, scale.y(count), right - left - 1, scale.y(0) - scale.y(count), pen.colours[0]);
  });
  const mine = scale.x(facts.costs[layer][head]);
  pen.line([[scale.x(0), field.top], [scale.x(0), field.top + field.height]], pen.theme.grey);
  pen.line([[mine, field.top], [mine, field.top + field.height]], pen.colours[1], 2.5);
}

// The column and row of a field's cells under a place, or null.
function cell_at({ x, y }, field, columns, rows) {
  const column = Math.floor(((x - field.left) / field.width) * columns);
  const row = Math.floor(((y - field.top) / field.height) * rows);
  return column >= 0 && column < columns && row >= 0 && row < rows ? [column, row] : null;
}

function atlas_under(at, s, model) {
  const facts = heads_of(model, s.model);
  const fields = atlas_fields(at.width, facts);
  const on_grid = cell_at(at, fields.grid, facts.n_head, facts.n_layer);
  const on_map = is_head(facts, s) ? cell_at(at, fields.map, facts.seq, facts.seq) : null;
  return { facts, on_grid, on_map };
}

export default explorer({
  height(width, s, model) {
    const { costs } = atlas_fields(width, heads_of(model, s.model));
    return costs.top + costs.height + 72;
  },
  limits: (s, model) => ({ place: [0, heads_of(model, s.model).seq - 1] }),
  asks(s, model) {
    const facts = heads_of(model, s.model);
    return s.it === HEAD_SILENT && !facts.missing && is_head(facts, s);
  },
  partial: true,
  waits: "Python asks the model what it says without this head; without a kernel it can't.",
  picks(at, s, model) {
    const { on_grid, on_map } = atlas_under(at, s, model);
    if (on_grid) return { head: on_grid[0], layer: on_grid[1] };
    return on_map && { place: on_map[1] };
  },
  reads(at, s, model) {
    const { facts, on_grid, on_map } = atlas_under(at, s, model);
    if (on_grid) return score_words(facts, { ...s, head: on_grid[0], layer: on_grid[1] });
    if (!on_map) return "";
    const [column, row] = on_map;
    const shares = [...given_row(facts, s, row)].map((share) => share / WEIGHT_OF_ONE);
    const [asks, key] = [facts.tokens[row].trim(), facts.tokens[column].trim()];
    return `“${asks}” (${row}) to “${key}” (${column}): ${fixed(shares[column], 3)}. ${row_reading(facts.tokens, shares, row)}`;
  },
  draw(pen, s, model) {
    const facts = heads_of(model, s.model);
    const fields = atlas_fields(pen.width, facts);
    draw_heads(pen, fields, facts, s);
    if (is_head(facts, s)) {
      draw_head(pen, fields, facts, s);
      draw_said(pen, fields.output, facts, s);
      draw_costs(pen, fields.costs, facts, s);
    } else {
      const { left, top } = fields.map;
      pen.text("There is no such head; click on one.", left - TOKEN_ROOM, top + 20, { bold: true });
    }
    return atlas_sentence(facts, s);
  },
});
