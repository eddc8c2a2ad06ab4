// Lab 06: a small model's heads while it learns, played from the scores that were taken on the way.

const WAYS = 4; // heads whose way has a colour
const ROLE_NAMES = ["previous", "first", "same byte", "space"];

const _read = new WeakMap();
function scores_of(run) {
  if (!_read.has(run)) _read.set(run, floats(run.scores, Float64Array));
  return _read.get(run);
}

// One run's scores in one role: `at(look)` gives a number for each head, layer after layer.
function looks_of(model, { seed, role, step }) {
  const { runs, chance } = model.get("data");
  const run = runs[seed];
  const heads = run.n_layer * run.n_head;
  const start = ROLE_NAMES.indexOf(role) * run.at.length * heads;
  const all = scores_of(run).subarray(start, start + run.at.length * heads);
  const at = (look) => [...all.subarray(look * heads, (look + 1) * heads)];
  const now = Math.max(0, run.at.findLastIndex((one) => one <= step));
  const end = at(run.at.length - 1);
  const order = end.map((_, head) => head).sort((a, b) => end[b] - end[a]);
  return { run, at, now, end, order, best: order[0], even: chance[role] };
}

function head_name({ run }, place) {
  return `layer ${Math.floor(place / run.n_head)}, head ${place % run.n_head}`;
}

function scrub_sentence(looks) {
  const { run, at, now, end, best, even } = looks;
  return (
    `${run.n_layer} layers, d_model ${run.d_model}, n_head ${run.n_head}; loss at this step about ` +
    `${fixed(run.loss[now], 2)} nats a byte. Head ${best % run.n_head} of layer ` +
    `${Math.floor(best / run.n_head)}, the best in the end, gives ${fixed(at(now)[best], 2)} at step ` +
    `${fixed(run.at[now], 0)} and ${fixed(end[best], 2)} at the end; by chance it would be ` +
    `${fixed(even, 2)}.`
  );
}

// A cell for every head; the one that is best in the end has a frame.
function draw_heads(pen, field, { run, at, now, best }, role) {
  const scale = pen.axes(field, {
    x: [-0.5, run.n_head - 0.5], y: [run.n_layer - 0.5, -0.5], x_label: "head", y_label: "layer",
    x_ticks: Array.from({ length: run.n_head }, (_, head) => head),
    y_ticks: Array.from({ length: run.n_layer }, (_, layer) => layer),
    title: `Step ${fixed(run.at[now], 0)}: share of weight on "${role}"`,
  });
  const [wide, high] = [scale.x(1) - scale.x(0), scale.y(1) - scale.y(0)];
  const corner = (place) => [
    scale.x((place % run.n_head) - 0.5), scale.y(Math.floor(place / run.n_head) - 0.5),
  ];
  at(now).forEach((share, place) => {
    const [[x, y], colour] = [corner(place), cividis(share)];
    pen.box(x, y, wide - 1, high - 1, css(colour));
    const ink = { align: "center", size: 12, most: wide - 2, colour: ink_on(colour) };
    pen.text(fixed(share, 2), x + wide / 2, y + high / 2, ink);
  });
  const [x, y] = corner(best);
  pen.frame(x, y, wide - 1, high - 1, pen.colours[1], 3);
}

// Every head's way: the best in the end in colours, with names; and where it stands now.
function draw_ways(pen, field, looks) {
  const { run, at, now, order, even } = looks;
  const last = run.at.at(-1);
  const scale = pen.axes(field, {
    x: [run.at[0], Math.max(last, 1)], y: [0, 1], grid: true, x_label: "step of the training",
    y_label: "share", y_ticks: [[0, "0"], [0.25, "0.25"], [0.5, "0.5"], [0.75, "0.75"], [1, "1"]],
  });
  const way = (place) => run.at.map((step, look) => [scale.x(step), scale.y(at(look)[place])]);
  for (const place of order.slice(WAYS)) pen.line(way(place), pen.theme.grey, 0.7);
  const named = order.slice(0, WAYS).map((place, i) => [place, pen.colours[1 + i]]);
  for (const [place, colour] of named.toReversed()) pen.line(way(place), colour, 2.2);
  const flat = [scale.x(run.at[0]), scale.x(last)].map((x) => [x, scale.y(even)]);
  pen.line(flat, pen.theme.ink, 1, [2, 4]);
  const here = scale.x(run.at[now]);
  pen.line([[here, field.top], [here, field.top + field.height]], pen.theme.ink, 1.5);
  for (const [place, colour] of named) {
    pen.box(here - 3, scale.y(at(now)[place]) - 3, 7, 7, colour, pen.theme.paper);
  }
  const words = named.map(([place, colour]) => [
    `${head_name(looks, place)}: ${fixed(at(now)[place], 2)}`, colour,
  ]);
  const half = pen.narrow ? 2 : words.length;
  for (let row = 0; row * half < words.length; row++) {
    const y = field.top - 18 - 20 * (words.length / half - 1 - row);
    pen.legend(field.left, y, words.slice(row * half, (row + 1) * half));
  }
  const corner = [field.left + field.width - 8, field.top + 12];
  pen.text(`dotted: by chance, ${fixed(even, 2)}`, ...corner, { align: "right", size: 12 });
}

export default explorer({
  height: (width, s, model) => heads_high(model, s) + (width < 700 ? 366 : 346),
  limits: (s, model) => ({ step: [0, model.get("data").runs[s.seed].at.at(-1)] }),
  draw(pen, s, model) {
    const looks = looks_of(model, s);
    const upper = { left: 66, top: 36, width: pen.width - 82, height: heads_high(model, s) };
    draw_heads(pen, upper, looks, s.role);
    const room = pen.narrow ? 102 : 82;
    const lower = { ...upper, top: upper.top + upper.height + room, height: 180 };
    draw_ways(pen, lower, looks);
    return scrub_sentence(looks);
  },
});

function heads_high(model, { seed }) {
  return 34 * model.get("data").runs[seed].n_layer;
}
