// Lab 09: the blocks of a launch are dealt out to the SMs of a GPU, one after the other.

const PIECE = 16; // what a tensor core takes of a vector at once, in CUDA C++
const ACROSS = 16;

// How many blocks each SM gets; `grid` queries of a head are one block's, 0 stands for all.
function dealt({ n_head, batch, tokens, grid, gpu }) {
  const counts = Array(gpu).fill(0);
  let blocks = 0;
  for (let text = 0; text < batch; text++) {
    for (let head = 0; head < n_head; head++) {
      for (let query = 0; query < tokens; query += grid || tokens) counts[blocks++ % gpu]++;
    }
  }
  return { counts, blocks };
}

function draw_sms(pen, field, { counts, blocks }) {
  const sms = counts.length;
  const busy = counts.filter((count) => count > 0).length;
  const title = `${many(blocks, "block")} on ${sms} SMs: ${fixed((100 * busy) / sms, 1)}% busy`;
  const most = Math.max(1, ...counts);
  const rows = Math.ceil(sms / ACROSS);
  const [wide, high] = [field.width / ACROSS, field.height / rows];
  pen.text(title, field.left, field.top - 14, { bold: true, size: 14, most: field.width });
  counts.forEach((count, sm) => {
    const [x, y] = [field.left + (sm % ACROSS) * wide, field.top + Math.floor(sm / ACROSS) * high];
    const colour = cividis(count / most);
    pen.box(x, y, wide - 1.5, high - 1.5, css(colour));
    const room = { align: "center", size: 12, most: wide - 3, colour: ink_on(colour) };
    pen.text(fixed(count, 0), x + wide / 2, y + high / 2, room);
  });
  const words = "SMs; in each the number of its blocks";
  const at = [field.left + field.width / 2, field.top + field.height + 6];
  pen.text(words, ...at, { align: "center", base: "top" });
}

// A head's numbers in the pieces that a tensor core takes; what is filled up is hatched.
function draw_pieces(pen, field, head_dim, filled) {
  const title = `head_dim ${head_dim} in pieces of ${PIECE}: ${fixed((100 * head_dim) / filled, 0)}% useful`;
  pen.text(title, field.left, field.top - 14, { bold: true, size: 14, most: field.width });
  const x = (value) => field.left + (value / filled) * field.width;
  for (let from = 0, piece = 0; from < filled; from += PIECE, piece++) {
    const colour = pen.colours[piece % 2];
    const wide = x(from + PIECE) - x(from);
    pen.box(x(from), field.top, wide - (wide > 4 ? 1 : 0), field.height, colour);
    const at = [x(from) + wide / 2, field.top + field.height / 2];
    if (wide > 26) pen.text(piece, ...at, { align: "center", colour: ink_on(colour) });
  }
  if (filled > head_dim) {
    const rest = x(filled) - x(head_dim);
    pen.box(x(head_dim), field.top, rest, field.height, pen.theme.paper, pen.colours[5]);
    pen.hatch(x(head_dim), field.top, rest, field.height, pen.colours[5]);
  }
  const words = `numbers of one head, filled up to ${filled}`;
  const at = [field.left + field.width / 2, field.top + field.height + 6];
  pen.text(words, ...at, { align: "center", base: "top" });
}

function grid_sentence({ n_head, batch, gpu }, { counts, blocks }, head_dim, filled) {
  const most = Math.max(...counts);
  const full = counts.filter((count) => count === most).length;
  let told = `${full} SMs have ${most} blocks each, the others ${most - 1}.`;
  if (blocks < gpu) told = `${gpu - blocks} of ${gpu} SMs have nothing to do.`;
  else if (full === gpu) told = `Each SM has ${many(most, "block")}.`;
  const zeros = filled > head_dim ? `${filled - head_dim} zeros fill it up` : "nothing to fill up";
  return (
    `${many(n_head * batch, "head")} of all texts make ${many(blocks, "block")}. ${told} ` +
    `head_dim ${head_dim}: ${many(filled / PIECE, "piece")} of ${PIECE}, ${zeros}.`
  );
}

export default explorer({
  height: (width, { gpu }) => 190 + 26 * Math.ceil(gpu / ACROSS),
  draw(pen, s) {
    const head_dim = s.d_model / s.n_head;
    const filled = Math.ceil(head_dim / PIECE) * PIECE;
    const launch = dealt(s);
    const field = { left: 12, width: pen.width - 24 };
    draw_sms(pen, { ...field, top: 34, height: pen.height - 190 }, launch);
    draw_pieces(pen, { ...field, top: pen.height - 86, height: 44 }, head_dim, filled);
    return grid_sentence(s, launch, head_dim, filled);
  },
});
