// Lab 03: the wide projection matrix, cut by head. Columns are given out one block after the other,
// and then it is looked up who has which.

const LETTERS = ["q", "k", "v"];
const LAYOUTS = ["W_Q", "W_QKV, stacked", "W_QKV, interleaved"];
const [PALE, PALER] = [0.32, 0.18];

// The blocks from left to right: {letter, head, start}, each head_dim columns wide.
function blocks_of(matrix, n_head, head_dim) {
  const heads = Array.from({ length: n_head }, (_, head) => head);
  const letters = matrix === LAYOUTS[0] ? ["q"] : LETTERS;
  const in_turn =
    matrix === LAYOUTS[2]
      ? heads.flatMap((head) => letters.map((letter) => ({ letter, head })))
      : letters.flatMap((letter) => heads.map((head) => ({ letter, head })));
  let given = 0;
  return in_turn.map((block) => {
    const start = given;
    given += head_dim;
    return { ...block, start };
  });
}

function matrix_field(pen) {
  return { left: 84, top: 66, width: pen.width - 100, height: pen.height - 130 };
}

function matrix_axes(pen, columns, rows, title) {
  pen.title(title);
  return pen.axes(matrix_field(pen), {
    x: [0, columns], y: [rows, 0],
    x_label: `the ${columns} columns: what comes out of x @ W`,
    y_label: `the ${rows} rows:\nthe token's numbers`,
  });
}

function draw_blocks(pen, { n_head, d_model, head, matrix }, not_yours) {
  const head_dim = d_model / n_head;
  const blocks = blocks_of(matrix, n_head, head_dim);
  const own = blocks.filter((block) => block.head === head);
  const spans =
    own.length === 1
      ? `columns ${own[0].start} to ${own[0].start + head_dim - 1}`
      : `${own.length} blocks of ${head_dim} columns`;
  const columns = blocks.length * head_dim;
  const title = `Head ${head} has every row, and ${spans}`;
  const scale = matrix_axes(pen, columns, d_model, title);
  const { top, height } = matrix_field(pen);
  const colour = (letter) => pen.colours[LETTERS.indexOf(letter)];
  for (const block of blocks) {
    const strength = block.head === head ? 1 : [PALE, PALER][block.head % 2];
    const shade = tint(colour(block.letter), pen.theme.paper, strength);
    const [x0, x1] = [scale.x(block.start), scale.x(block.start + head_dim)];
    pen.box(x0, top, x1 - x0, height, shade);
    if (x1 - x0 < 16) continue;
    const words = x1 - x0 > 28 ? `${block.letter}${block.head}` : block.head;
    const middle = { align: "center", size: 12, colour: ink_on(shade) };
    pen.text(words, (x0 + x1) / 2, top + height / 2, middle);
  }
  const names = own.map(({ letter }) => [`${letter} of head ${head}`, colour(letter)]);
  pen.legend(matrix_field(pen).left, 44, names);
  const sentence = slices_sentence(own, { n_head, d_model, head, matrix, head_dim });
  if (!not_yours) return sentence;
  pen.text(not_yours, 8, 29, { size: 12, most: pen.width - 16 });
  return `${not_yours} ${sentence}`;
}

function slices_sentence(own, { n_head, d_model, head, matrix, head_dim }) {
  const name = matrix === LAYOUTS[0] ? "W_Q" : "W_QKV";
  const where = own
    .map(({ letter, start }) => `${letter} = ${name}[:, ${start}:${start + head_dim}]`)
    .join(", ");
  const letters = listed(own.map(({ letter }) => letter));
  return (
    `Head ${head} of ${n_head} reads all ${d_model} numbers of a token and gives ${head_dim} of ` +
    `${letters}.\n${where}; ${d_model} × ${head_dim} each.`
  );
}

// Which head's number stands at each place of the matrix that a student's function made.
function draw_own_matrix(pen, { d_model, head, own }) {
  matrix_axes(pen, d_model, d_model, own.title);
  const { left, top, width, height } = matrix_field(pen);
  const owner = floats(own.owner, Uint8Array);
  const shades = [1, PALE, PALER].map((s) => rgb(tint(pen.colours[0], pen.theme.paper, s)));
  pen.cells(left, top, width, height, own.side, own.side, (i) =>
    owner[i] === head ? shades[0] : shades[1 + (owner[i] % 2)],
  );
  pen.legend(left, 44, [[`numbers of head ${head}`, pen.colours[0]]]);
}

export default explorer({
  height: (width) => Math.round(Math.min(360, 200 + 0.16 * width)),
  asks: (s, model) => model.get("data").asks && s.matrix === LAYOUTS[0] && s.head < s.n_head,
  draw(pen, s, model) {
    if (s.head >= s.n_head) {
      pen.text(`There is no head ${s.head}.`, 12, 30);
      return `There is no head ${s.head}: ${s.n_head} heads are numbered 0 to ${s.n_head - 1}.`;
    }
    const { asks, not_yours } = model.get("data");
    if (!s.own) return draw_blocks(pen, s, asks && s.matrix !== LAYOUTS[0] && not_yours);
    draw_own_matrix(pen, s);
    return s.own.message;
  },
});
