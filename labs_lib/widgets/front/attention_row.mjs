// Lab 01: one row of attention. The tokens come from Python once; all else is computed here.

const N_TOKEN = 7;
const ROW_SCALES = ["1/√head_dim", "1/√d_model", "none"];

// The tokens, [2, N_TOKEN, width]: queries, then keys.
const _tokens = new WeakMap();
function tokens_of(model) {
  if (!_tokens.has(model)) _tokens.set(model, floats(model.get("data").tokens));
  return _tokens.get(model);
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

// The score of every key for the query; one key is moved along the query first.
function row_scores(tokens, { n_head, d_model, query, key, pull, scale }) {
  const [wide, head_dim] = [tokens.length / 2 / N_TOKEN, d_model / n_head];
  const vector = (side, token) => {
    const start = (side * N_TOKEN + token) * wide;
    return tokens.subarray(start, start + head_dim);
  };
  const q = vector(0, query);
  const spread = [head_dim, d_model, 1][ROW_SCALES.indexOf(scale)] ** -0.5;
  return Array.from({ length: N_TOKEN }, (_, token) => {
    const moved = token === key ? pull * Math.sqrt(head_dim) : 0;
    return (dot(vector(1, token), q) + moved) * spread;
  });
}

// What each key gets: held against every other key in turn, e to the power of how far it is behind.
function row_weights(scores, open) {
  return scores.map((mine, i) => {
    if (!open[i]) return 0;
    const others = scores.filter((_, j) => open[j]).map((other) => Math.exp(other - mine));
    return 1 / others.reduce((sum, share) => sum + share, 0);
  });
}

function spread_of(values) {
  const middle = values.reduce((sum, v) => sum + v, 0) / values.length;
  return Math.sqrt(values.reduce((sum, v) => sum + (v - middle) ** 2, 0) / values.length);
}

// How far the row falls short of an even one, taken from the most that is possible.
function evenness(weights, count) {
  const short = weights.map((w) => (w > 0 ? w * Math.log(count * w) : 0));
  return Math.max(0, Math.log(count) - short.reduce((sum, part) => sum + part, 0));
}

function row_sentence({ n_head, d_model, query }, scores, weights) {
  const most = weights.indexOf(Math.max(...weights));
  const sum = weights.reduce((total, w) => total + w, 0);
  return (
    `head_dim ${d_model / n_head}. Query ${query} gives k${most} the most, ` +
    `${fixed(100 * weights[most], 1)} %; all weights add up to ${fixed(100 * sum, 1)} %. ` +
    `The scores have standard deviation ${fixed(spread_of(scores), 2)}; the entropy of the row is ` +
    `${fixed(evenness(weights, scores.length), 2)} of at most ${fixed(Math.log(scores.length), 2)} nats.`
  );
}

function draw_bars(pen, field, values, open, options) {
  const names = values.map((_, i) => [i, `k${i}`]);
  const scale = pen.axes(field, { x: [-0.6, N_TOKEN - 0.4], x_ticks: names, grid: true, ...options });
  const wide = scale.x(0.72) - scale.x(0);
  values.forEach((value, i) => {
    const left = scale.x(i) - wide / 2;
    if (!open[i]) return pen.hatch(left, field.top, wide, field.height);
    const [from, to] = [scale.y(0), scale.y(value)];
    pen.box(left, Math.min(from, to), wide, Math.abs(to - from), options.colour);
    const at = to + (value < 0 ? 10 : -10);
    pen.text(fixed(value, 1), scale.x(i), at, { align: "center", size: 12 });
  });
  pen.line([[field.left, scale.y(0)], [field.left + field.width, scale.y(0)]]);
}

export default explorer({
  height: (width) => (width < 700 ? 560 : 300),
  asks: (s, model) => model.get("data").asks,
  partial: true,
  draw(pen, s, model) {
    const scores = row_scores(tokens_of(model), s);
    const open = scores.map((_, token) => !s.causal || token <= s.query);
    const seen = scores.filter((_, i) => open[i]);
    const waits = model.get("data").asks && !s.own;
    const weights = s.own ? [...floats(s.own.weights)] : row_weights(scores, open);
    const across = pen.narrow ? pen.width - 80 : pen.width / 2 - 80;
    const high = 200;
    const left = { left: 66, top: 38, width: across, height: high };
    const right = pen.narrow
      ? { ...left, top: 38 + high + 78 }
      : { ...left, left: pen.width / 2 + 66 };
    const reach = 1.25 * Math.max(3, ...seen.map(Math.abs));
    draw_bars(pen, left, scores, open, {
      y: [-reach, reach], colour: pen.colours[1],
      title: "scores", x_label: "key", y_label: "score (a plain number)",
    });
    draw_bars(pen, right, weights.map((w) => 100 * w), waits ? open.map(() => false) : open, {
      y: [0, 112], y_ticks: [0, 25, 50, 75, 100], colour: pen.colours[0],
      title: waits ? "weights: your function is asked" : `weights of query ${s.query}`,
      x_label: "key", y_label: "weight (%)",
    });
    if (waits) return `head_dim ${s.d_model / s.n_head}.`;
    return s.own ? s.own.message : row_sentence(s, seen, weights);
  },
});
