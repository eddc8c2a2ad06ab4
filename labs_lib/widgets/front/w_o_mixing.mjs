// Lab 05: which head wrote which number of the output. A token's numbers and a matrix come from
// Python once; here each number is multiplied by its row, and the row goes to its head's account.

const WITH_W_O = "with W_O";
const NOBODY = "none";
const TITLES = [
  "With W_O every head writes into every number",
  "Without W_O a head writes into its own numbers only",
];

const _given = new WeakMap();
function given_of(model) {
  if (!_given.has(model)) {
    const { token, matrix } = model.get("data");
    _given.set(model, { token: floats(token), matrix: floats(matrix) });
  }
  return _given.get(model);
}

// What every head adds, one array of d_model numbers per head.
function accounts({ token, matrix }, { n_head, d_model, merge }, silent) {
  const scale = Math.fround(Math.sqrt(3 / d_model));
  const books = Array.from({ length: n_head }, () => new Float64Array(d_model));
  const most = token.length;
  let [head, left] = [0, d_model / n_head];
  for (let row = 0; row < d_model; row++, left--) {
    if (left === 0) [head, left] = [head + 1, d_model / n_head];
    if (head === silent) continue;
    for (let column = 0; column < d_model; column++) {
      const entry =
        merge === WITH_W_O
          ? Math.fround(scale * matrix[row * most + column])
          : Number(row === column);
      books[head][column] += token[row] * entry;
    }
  }
  return books;
}

function rows_of(values, width) {
  const starts = Array.from({ length: values.length / width }, (_, row) => row * width);
  return starts.map((start) => values.subarray(start, start + width));
}

function signed(value) {
  return `${value < 0 ? "" : "+"}${fixed(value, 2)}`;
}

function mixing_sentence(parts, before, { n_head, d_model, merge, off }) {
  const middle = Math.floor(d_model / 2);
  const column = parts.map((part) => part[middle]);
  const terms = column.map(signed);
  const shown = n_head <= 6 ? terms : [...terms.slice(0, 3), "...", terms.at(-1)];
  const total = fixed(column.reduce((sum, value) => sum + value, 0), 2);
  const writer = Math.floor((middle * n_head) / d_model);
  const sentence =
    merge === WITH_W_O
      ? `Number ${middle} of the output is ${shown.join(" ")} = ${total}.`
      : `Number ${middle} of the output, ${total}, comes from head ${writer} alone.`;
  if (off !== NOBODY) {
    const others = parts.flatMap((part, h) =>
      h === off ? [0] : [...part].map((value, c) => Math.abs(value - before[h][c])),
    );
    return `Head ${off} is off. What the others add changed by ${Math.max(...others)}. ${sentence}`;
  }
  const counts = [...parts[0]].map((_, c) => parts.filter((part) => part[c] !== 0).length);
  const writers = Math.max(...counts);
  const heads = writers === 1 ? "1 head writes" : `${writers} heads write`;
  return `${heads} into each number of the output. ${sentence}`;
}

// What the ends of the colours stand for: the largest size, up to the next half.
function most_of(before) {
  const sizes = before.flatMap((part) => [...part].filter(Number.isFinite).map(Math.abs));
  return Math.max(0.5, Math.ceil(2 * Math.max(0, ...sizes)) / 2);
}

function draw_parts(pen, field, parts, before, { n_head, d_model, merge, off }, title) {
  const most = most_of(before);
  const shade = (value) => cividis((value + most) / (2 * most));
  pen.cells(field.left, field.top, field.width, field.height, n_head, d_model, (i) =>
    shade(parts[Math.floor(i / d_model)][i % d_model]),
  );
  const scale = pen.axes(field, {
    x: [0, d_model], y: [n_head, 0], x_ticks: [], y_label: "head", title,
    y_ticks: parts.map((_, h) => [h + 0.5, h]),
  });
  const [wide, high] = [scale.x(1) - scale.x(0), scale.y(1) - scale.y(0)];
  parts.forEach((part, h) => {
    part.forEach((value, c) => {
      const [x, y] = [scale.x(c), scale.y(h)];
      if (h === off || (merge !== WITH_W_O && value === 0)) {
        pen.box(x, y, wide + 0.5, high, pen.theme.paper);
        if (h !== off && c % 4 === 0) pen.hatch(x, y, Math.min(4, d_model - c) * wide, high);
      } else if (wide >= 26 && high >= 16) {
        const ink = { align: "center", size: 11, colour: ink_on(shade(value)) };
        const words = fixed(value, 1);
        pen.text(words === "-0.0" ? "0.0" : words, x + wide / 2, y + high / 2, ink);
      }
    });
    if (h === off) pen.hatch(field.left, scale.y(h), field.width, high);
  });
  const place = { left: pen.width - 190, top: field.top + field.height + 12 };
  pen.shades(place.left, place.top, 150, -most, most, "what is added");
}

function draw_sum(pen, field, parts, before) {
  const total = (books) => [...parts[0]].map((_, c) => books.reduce((sum, b) => sum + b[c], 0));
  const [now, was] = [total(parts), total(before)];
  const reach = 1.1 * Math.max(...now.map(Math.abs), ...was.map(Math.abs));
  const scale = pen.axes(field, {
    x: [0, now.length], y: [-reach, reach], grid: true, y_label: "their sum:\nthe output",
    x_label: `the ${now.length} numbers of the output`,
  });
  const wide = scale.x(1) - scale.x(0);
  now.forEach((value, c) => {
    const [from, to] = [scale.y(0), scale.y(value)];
    const left = scale.x(c) + 0.1 * wide;
    pen.box(left, Math.min(from, to), 0.8 * wide, Math.abs(to - from), pen.colours[0]);
  });
  pen.line([[field.left, scale.y(0)], [field.left + field.width, scale.y(0)]]);
}

export default explorer({
  height: (width, { n_head }) => 300 + rows_high(n_head),
  asks: (s, model) => model.get("data").asks && (s.off === NOBODY || s.off < s.n_head),
  draw(pen, s, model) {
    if (s.off !== NOBODY && s.off >= s.n_head) {
      pen.text(`There is no head ${s.off}.`, 12, 30);
      return `There is no head ${s.off}: ${s.n_head} heads are numbered 0 to ${s.n_head - 1}.`;
    }
    const { own } = s;
    const rows = (bytes) => rows_of(floats(bytes), s.d_model);
    const before = own ? rows(own.before) : accounts(given_of(model), s, null);
    const parts = own ? rows(own.parts) : accounts(given_of(model), s, s.off);
    const upper = { left: 72, top: 36, width: pen.width - 88, height: rows_high(s.n_head) };
    draw_parts(pen, upper, parts, before, s, TITLES[Number(s.merge !== WITH_W_O)]);
    draw_sum(pen, { ...upper, top: upper.top + upper.height + 56, height: 140 }, parts, before);
    return own ? own.message : mixing_sentence(parts, before, s);
  },
});

function rows_high(n_head) {
  return n_head * (n_head > 8 ? 16 : 24);
}
