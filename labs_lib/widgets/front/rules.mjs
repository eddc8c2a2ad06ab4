// Which settings don't go together, why, and the nearest that do.
// A rule gives null, or {why, offers: [[name, value], ...], width, parts, title}.

function divisors(n) {
  return Array.from({ length: n }, (_, i) => i + 1).filter((d) => n % d === 0);
}

// The divisors of n nearest to `count`: itself, or one on each side.
function nearest_divisors(n, count) {
  const all = divisors(n);
  if (all.includes(count)) return [count];
  const [below, above] = [all.filter((d) => d < count), all.filter((d) => d > count)];
  return [...below.slice(-1), ...above.slice(0, 1)];
}

function nearest_widths(d_model, n_head) {
  const below = d_model - (d_model % n_head);
  const near = below === d_model ? [below] : [below, below + n_head];
  return near.filter((width) => width >= 1);
}

function listed(values, word = "and") {
  if (values.length < 2) return String(values[0]);
  return `${values.slice(0, -1).join(", ")} ${word} ${values.at(-1)}`;
}

// Why it doesn't fit, and the ways out.
function refusal({ why, offers }) {
  const ways = new Map();
  for (const [name, value] of offers) ways.set(name, [...(ways.get(name) ?? []), value]);
  const [first, ...others] = [...ways].map(([name, values]) => `${name}=${values.join(" or ")}`);
  return first ? [`${why}; ${first} would do`, ...others].join(", or ") : why;
}

// n_head must divide d_model.
function pair_rule({ n_head, d_model }) {
  if (n_head === undefined || d_model === undefined || d_model % n_head === 0) return null;
  const [widths, counts] = [nearest_widths(d_model, n_head), nearest_divisors(d_model, n_head)];
  return {
    why: `d_model=${d_model} can't be shared out evenly among n_head=${n_head} heads`,
    offers: [...widths.map((w) => ["d_model", w]), ...counts.map((c) => ["n_head", c])],
    kept: { d_model: "n_head", n_head: "d_model" },
    width: d_model,
    parts: n_head,
    title: "These heads don't fit",
    label: `the ${d_model} numbers of one query; the number in a block is its head`,
  };
}

// n_kv_head must divide n_head.
function group_rule({ n_head, n_kv_head }) {
  if (n_kv_head === undefined || n_head % n_kv_head === 0) return null;
  return {
    why: `n_kv_head=${n_kv_head} does not divide n_head=${n_head}`,
    offers: nearest_divisors(n_head, n_kv_head).map((count) => ["n_kv_head", count]),
    kept: { n_kv_head: "n_head" },
    width: n_head,
    parts: Math.min(n_head, n_kv_head),
    title: "These groups don't fit",
    label: `the ${n_head} heads, to be shared out among ${n_kv_head} keys`,
  };
}

// A width cut into parts, and what is left over.
function draw_split(pen, { width, parts, title, label }) {
  const [size, left] = [Math.floor(width / parts), width % parts];
  const [x0, y0, wide, high] = [16, 48, pen.width - 32, 54];
  const x = (value) => x0 + (value / width) * wide;
  for (let part = 0; size && part < parts; part++) {
    const colour = pen.colours[part % 2];
    pen.box(x(part * size), y0, x((part + 1) * size) - x(part * size) - 1, high, colour);
    const at = x((part + 0.5) * size);
    if (wide / parts > 18) {
      pen.text(part, at, y0 + high / 2, { align: "center", colour: ink_on(colour) });
    }
  }
  const rest = x(width - left);
  if (left) {
    pen.hatch(rest, y0, x(width) - rest, high, pen.colours[5]);
    pen.text(`${left} left over`, x(width), y0 - 10, { align: "right", colour: pen.colours[5] });
  }
  pen.title(title);
  pen.text(label, x0 + wide / 2, y0 + high + 18, { align: "center", most: wide });
}
