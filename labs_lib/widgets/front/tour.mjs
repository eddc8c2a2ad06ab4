// Lab 00: the numbers of one query, shared out among heads.

export default explorer({
  height: () => 140,
  draw(pen, { n_head, d_model }) {
    const head_dim = d_model / n_head;
    const label = `the ${d_model} numbers of one query; the number in a block is its head`;
    draw_split(pen, { width: d_model, parts: n_head, title: `${n_head} heads of ${head_dim}`, label });
    const heads = n_head === 1 ? "1 head" : `${n_head} heads`;
    return `${heads} of head_dim ${head_dim}: ${n_head} × ${head_dim} = ${d_model}.`;
  },
});
