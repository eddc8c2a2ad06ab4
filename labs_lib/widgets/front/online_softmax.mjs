// Lab 10: a row of scores that arrives block by block. What a student's merge made is played from
// the trace that Python sent; the other ways are sums over the scores that have come.

const ROW_KEYS = 16;
const [ROW_OWN, ROW_BOTH] = ["your merge_softmax_states", "l and o"];
const [RISING, FALLING] = ["rising", "falling"];

const _row_tables = new WeakMap();
function row_tables(model) {
  if (!_row_tables.has(model)) {
    const { scores, values } = model.get("data");
    _row_tables.set(model, { scores: floats(scores), values: floats(values) });
  }
  return _row_tables.get(model);
}

// The row's scores [16] and values [16][head_dim].
function row_of(model, { n_head, d_model, head, scores: order }) {
  const { scores, values } = row_tables(model);
  const row = [...scores.slice(head * ROW_KEYS, (head + 1) * ROW_KEYS)];
  if (order === RISING) row.sort((a, b) => a - b);
  if (order === FALLING) row.sort((a, b) => b - a);
  const wide = values.length / scores.length;
  const vectors = row.map((_, key) => {
    const start = (head * ROW_KEYS + key) * wide;
    return [...values.slice(start, start + d_model / n_head)];
  });
  return { scores: row, values: vectors };
}

function weighted(counts, values) {
  return values[0].map((_, i) => counts.reduce((sum, count, key) => sum + count * values[key][i], 0));
}

// The state after `at` blocks: m, l, o and what each key counts for in o. A key counts
// exp(score - what it is measured against): the largest score of now where a sum is corrected, the
// largest of its own block where it isn't, as far on the other side where it is turned upside down.
function state_of({ scores, values }, { block, rescale }, at) {
  const seen = Math.min(at * block, ROW_KEYS);
  const now = Math.max(-Infinity, ...scores.slice(0, seen));
  const first = (key) => {
    const start = key - (key % block);
    return Math.max(...scores.slice(start, start + block));
  };
  const mirrored = rescale === "upside down";
  const counts = (corrected) =>
    scores.map((score, key) => {
      if (key >= seen) return 0;
      const against = mirrored ? 2 * first(key) - now : corrected ? now : first(key);
      return Math.exp(score - against);
    });
  const [in_l, in_o] = [["only l", ROW_BOTH], ["only o", ROW_BOTH]].map((ways) =>
    counts(ways.includes(rescale)),
  );
  return { m: now, l: in_l.reduce((a, b) => a + b, 0), o: weighted(in_o, values), counts: in_o };
}

// The same out of a student's trace.
function state_in(trace, { n_head, d_model, head }, at) {
  const wide = d_model / n_head;
  const start = (at * n_head + head) * (2 + wide + ROW_KEYS);
  const [m, l, ...rest] = trace.slice(start, start + 2 + wide + ROW_KEYS);
  return { m, l, o: rest.slice(0, wide), counts: rest.slice(wide) };
}

// What attention over the keys that have come gives, and what each of them should count for.
function wanted_of({ scores, values }, seen) {
  const come = scores.slice(0, seen);
  const shares = come.map((score) => Math.exp(score - Math.max(...come)));
  const total = shares.reduce((a, b) => a + b, 0);
  const counts = scores.map((_, key) => shares[key] ?? 0);
  return { counts, output: weighted(shares.map((share) => share / total), values) };
}

// Everything about one step: its state, its output, what was wanted, and how far away it is.
function moment_of(row, s, states, at) {
  const seen = Math.min(at * s.block, ROW_KEYS);
  const state = states(at);
  const output = state.o.map((sum) => (state.l > 0 ? sum / state.l : 0));
  const wanted = wanted_of(row, seen);
  const error = output.reduce((most, one, i) => {
    const away = Math.abs(one - wanted.output[i]);
    return most > away || Number.isNaN(most) ? most : away;
  }, 0);
  return { at, seen, state, output, wanted, error };
}

function error_words(error) {
  return error < 1e-5 ? "within rounding" : `${general(error, 2)} away at most`;
}

// Blocks that have come are blue, the last is orange; below each step stands how far o / l is away.
function draw_row(pen, field, s, row, moments) {
  const now = moments.at(-1);
  const scale = pen.axes(field, {
    x: [-0.6, ROW_KEYS - 0.4], y: [-5.6, 6.6], x_label: "key; below a block: how far o / l was away",
    title: `${now.seen} of ${ROW_KEYS} scores have come; the last block is orange`,
    x_ticks: row.scores.map((_, key) => key), y_label: "score",
  });
  const last = now.at ? (now.at - 1) * s.block : 0;
  const bottom = field.top + field.height;
  row.scores.forEach((score, key) => {
    const colour = key >= now.seen ? pen.theme.faint : key >= last ? pen.colours[1] : pen.colours[0];
    const [left, wide] = [scale.x(key - 0.4), scale.x(0.8) - scale.x(0)];
    pen.box(left, scale.y(Math.max(score, 0)), wide, Math.abs(scale.y(score) - scale.y(0)), colour);
    const at = scale.y(score) + (score < 0 ? 9 : -9);
    if (wide > 24) pen.text(fixed(score, 1), scale.x(key), at, { align: "center", size: 11 });
  });
  for (let edge = s.block; edge < ROW_KEYS; edge += s.block) {
    pen.line([[scale.x(edge - 0.5), field.top], [scale.x(edge - 0.5), bottom]], pen.theme.faint);
  }
  pen.line([[field.left, scale.y(0)], [field.left + field.width, scale.y(0)]]);
  if (!now.at) return;
  const high = scale.y(Math.min(6, Math.max(-5.5, now.state.m)));
  if (Number.isFinite(high)) pen.line([[field.left, high], [field.left + field.width, high]], pen.theme.ink, 1.4, [5, 4]);
  pen.text(`m = ${fixed(now.state.m, 2)}`, field.left + field.width, field.top + 4, { align: "right" });
  moments.slice(1).forEach(({ at, seen, error }) => {
    const x = scale.x(((at - 1) * s.block + seen - 1) / 2);
    const words = error < 1e-5 ? "0" : general(error, 2);
    const most = scale.x(s.block) - scale.x(0) - 2;
    pen.text(words, x, bottom + 50, { align: "center", size: 11, most });
  });
}

// Bars of what is, and a dot on each for what it should be.
function draw_pairs(pen, field, bars, dots, options) {
  const scale = pen.axes(field, { x: [-0.6, bars.length - 0.4], ...options });
  const inside = (value) => scale.y(Math.min(options.y[1], Math.max(options.y[0], value)));
  bars.forEach((value, i) => {
    const [left, wide] = [scale.x(i - 0.4), scale.x(0.8) - scale.x(0)];
    const [from, to] = [scale.y(0), Number.isNaN(value) ? scale.y(0) : inside(value)];
    pen.box(left, Math.min(from, to), wide, Math.abs(to - from), pen.colours[0]);
  });
  dots.forEach((value, i) => dot_at(pen, scale.x(i), inside(value)));
  pen.line([[field.left, scale.y(0)], [field.left + field.width, scale.y(0)]]);
  const below = field.top + field.height + 52;
  const x = pen.legend(field.left, below, [[options.names[0], pen.colours[0]]]) + 6;
  dot_at(pen, x, below);
  pen.text(options.names[1], x + 10, below, { size: 12 });
}

function dot_at(pen, x, y) {
  pen.on.beginPath();
  pen.on.arc(x, y, 4.5, 0, 7);
  pen.on.fillStyle = pen.colours[1];
  pen.on.fill();
  pen.on.strokeStyle = pen.theme.paper;
  pen.on.lineWidth = 1;
  pen.on.stroke();
}

function row_sentence(s, moments, blocks) {
  const now = moments.at(-1);
  if (!now.at) return `Head ${s.head}, before the first block: m = -inf, l = 0, o = 0.`;
  const [before, { m, l }] = [moments.at(-2).state.m, now.state];
  const counts = s.rescale === ROW_BOTH ? "counts" : "should count";
  let moved = `m stays at ${fixed(m, 2)}: nothing that was collected changes`;
  if (now.at === 1) moved = `The first block sets m to ${fixed(m, 2)}`;
  else if (m > before) {
    moved =
      `m grew from ${fixed(before, 2)} to ${fixed(m, 2)}: what was collected ${counts} ` +
      `${general(Math.exp(before - m), 3)} times as much`;
  }
  const how = [ROW_OWN, ROW_BOTH].includes(s.rescale) ? "" : ` Rescaled: ${s.rescale}.`;
  return (
    `Head ${s.head}, block ${now.at} of ${blocks}. ${moved}; l = ${general(l, 3)}.${how}\n` +
    `o / l against the softmax of the ${now.seen} scores that have come: ${error_words(now.error)}.`
  );
}

function row_fields(pen) {
  const wide = pen.width - 70;
  const first = { left: 64, top: 34, width: wide, height: 150 };
  if (pen.narrow) {
    const below = { left: 64, top: 286, width: wide, height: 110 };
    return [first, below, { ...below, top: 500 }];
  }
  const below = { left: 64, top: 286, width: 0.52 * wide, height: 120 };
  const left = below.left + below.width + 76;
  return [first, below, { ...below, left, width: pen.width - left - 12 }];
}

export default explorer({
  height: (width) => (width < 700 ? 680 : 470),
  asks: ({ rescale }) => rescale === ROW_OWN,
  limits: (s) => ({ step: [0, Math.ceil(ROW_KEYS / s.block)], head: [0, s.n_head - 1] }),
  draw(pen, s, model) {
    const row = row_of(model, s);
    const trace = s.own ? floats(s.own.states, Float64Array) : null;
    const states = (at) => (trace ? state_in(trace, s, at) : state_of(row, s, at));
    const moments = Array.from({ length: s.step + 1 }, (_, at) => moment_of(row, s, states, at));
    const { state, wanted, output } = moments.at(-1);
    const [first, second, third] = row_fields(pen);
    draw_row(pen, first, s, row, moments);
    const largest = Math.max(...state.counts.filter((count) => count < Infinity), 0);
    const top = 1.2 * Math.max(1, Math.min(20, largest));
    draw_pairs(pen, second, state.counts, wanted.counts, {
      y: [0, top], x_label: "key", y_label: "weight", names: ["counts in o", "exp(score - m)"],
      title: `What each key counts for; l = ${general(state.l, 3)}`,
    });
    draw_pairs(pen, third, output, wanted.output, {
      y: [-2.2, 2.2], x_label: `the ${output.length} numbers of o`, names: ["o / l", "softmax"],
      x_ticks: [], title: "o / l so far",
    });
    return row_sentence(s, moments, Math.ceil(ROW_KEYS / s.block));
  },
});
