// Draws on a canvas in CSS pixels, with axes and numbers; sharp at every pixel ratio.

const SIZE = 13; // of a letter, in pixels

class Pen {
  constructor(canvas, width, height, theme) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.on = canvas.getContext("2d");
    this.on.setTransform(ratio, 0, 0, ratio, 0, 0);
    Object.assign(this, { width, height, theme, colours: theme.colours, narrow: width < 700 });
    this.box(0, 0, width, height, theme.paper);
  }

  // Letters at a place; `size`, `align`, `base`, `colour`, `bold`, `turn` (degrees), `most` pixels.
  text(words, x, y, options = {}) {
    const { size = SIZE, align = "left", base = "middle", bold, turn = 0, most } = options;
    this.on.save();
    this.on.font = `${bold ? "600 " : ""}${size}px ${this.theme.font}`;
    this.on.fillStyle = options.colour ?? this.theme.ink;
    this.on.textAlign = align;
    this.on.textBaseline = base;
    this.on.translate(x, y);
    this.on.rotate((turn * Math.PI) / 180);
    String(words).split("\n").forEach((line, i, all) => {
      const shift = base === "middle" ? (i - (all.length - 1) / 2) * 1.25 * size : i * 1.25 * size;
      this.on.fillText(line, 0, shift, most);
    });
    this.on.restore();
  }

  // How many pixels these letters are wide.
  wide(words, size = SIZE) {
    this.on.font = `${size}px ${this.theme.font}`;
    return this.on.measureText(words).width;
  }

  title(words) {
    this.text(words, 8, 14, { bold: true, size: 14, most: this.width - 16 });
  }

  box(x, y, width, height, colour, edge) {
    this.on.fillStyle = colour;
    this.on.fillRect(x, y, width, height);
    if (edge) {
      this.on.strokeStyle = edge;
      this.on.lineWidth = 1;
      this.on.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
  }

  // A place that holds nothing: hatched, so that it is no small number.
  hatch(x, y, width, height, colour = this.theme.grey) {
    this.on.save();
    this.on.beginPath();
    this.on.rect(x, y, width, height);
    this.on.clip();
    this.on.strokeStyle = colour;
    this.on.lineWidth = 0.8;
    this.on.beginPath();
    for (let at = -height; at < width; at += 7) {
      this.on.moveTo(x + at, y + height);
      this.on.lineTo(x + at + height, y);
    }
    this.on.stroke();
    this.on.restore();
  }

  line(points, colour = this.theme.ink, thick = 1, dash = []) {
    this.on.save();
    this.on.strokeStyle = colour;
    this.on.lineWidth = thick;
    this.on.setLineDash(dash);
    this.on.beginPath();
    points.forEach(([x, y], i) => (i ? this.on.lineTo(x, y) : this.on.moveTo(x, y)));
    this.on.stroke();
    this.on.restore();
  }

  // The four sides of a box.
  frame(x, y, width, height, colour, thick = 1) {
    const corners = [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]];
    this.line(corners, colour, thick);
  }

  // Cells [rows, columns], each in the colour [r, g, b] that `colour_of(index)` gives.
  cells(x, y, width, height, rows, columns, colour_of) {
    const small = document.createElement("canvas");
    [small.width, small.height] = [columns, rows];
    const on = small.getContext("2d");
    const image = on.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      const [red, green, blue] = colour_of(i);
      image.data.set([red, green, blue, 255], 4 * i);
    }
    on.putImageData(image, 0, 0);
    this.on.imageSmoothingEnabled = false;
    this.on.drawImage(small, x, y, width, height);
  }

  // Axes around a field {left, top, width, height}; gives the scales x(value) and y(value).
  // `x` and `y` are [low, high]; ticks are values or [value, words]; labels say words and units.
  axes(field, { x = [0, 1], y = [0, 1], x_ticks, y_ticks, x_label, y_label, title, grid }) {
    const { left, top, width, height } = field;
    const scale = {
      x: (value) => left + ((value - x[0]) / (x[1] - x[0])) * width,
      y: (value) => top + height - ((value - y[0]) / (y[1] - y[0])) * height,
    };
    const [bottom, small] = [top + height, { size: 12 }];
    for (const [value, words] of ticks_of(y_ticks, y, height / 44)) {
      if (grid) this.line([[left, scale.y(value)], [left + width, scale.y(value)]], this.theme.faint);
      this.text(words, left - 7, scale.y(value), { ...small, align: "right" });
    }
    for (const [value, words] of ticks_of(x_ticks, x, width / 80)) {
      this.text(words, scale.x(value), bottom + 7, { ...small, align: "center", base: "top" });
    }
    const middle = { align: "center" };
    if (x_label) {
      const at = bottom + (x_ticks?.length === 0 ? 8 : 24);
      this.text(x_label, left + width / 2, at, { ...middle, base: "top", most: this.width - 16 });
    }
    if (y_label) this.text(y_label, left - 52, top + height / 2, { ...middle, turn: -90 });
    if (title) this.text(title, left, top - 14, { bold: true, size: 14, most: this.width - left });
    return scale;
  }

  // What the colours of cividis stand for: a bar from `low` to `high`, its numbers and words below.
  shades(x, y, width, low, high, words) {
    this.cells(x, y, width, 10, 1, 64, (i) => cividis(i / 63));
    [low, (low + high) / 2, high].forEach((value, i) => {
      this.text(number(value), x + (i * width) / 2, y + 19, { align: "center", size: 11 });
    });
    this.text(words, x - 14, y + 5, { align: "right", size: 12 });
  }

  // Names of colours in a row: [[words, colour], ...]; gives the x at which it ends.
  legend(x, y, names) {
    for (const [words, colour] of names) {
      this.box(x, y - 6, 12, 12, colour);
      this.text(words, x + 17, y, { size: 12 });
      x += 17 + this.wide(words, 12) + 16;
    }
    return x;
  }
}

function ticks_of(given, range, about) {
  if (given) return given.map((tick) => (Array.isArray(tick) ? tick : [tick, number(tick)]));
  const [low, high] = [Math.min(...range), Math.max(...range)];
  const rough = (high - low) / Math.max(4, about);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((of) => of * ten).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at++) {
    found.push([at * step, number(at * step)]);
  }
  return found;
}

// A number as it is written in a picture: grouped by thousands, no more digits than it has.
function number(value) {
  return Number(value.toPrecision(10)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

// What Python packed as float32 or, with another kind, as other numbers.
function floats({ buffer, byteOffset, byteLength }, kind = Float32Array) {
  return new kind(buffer.slice(byteOffset, byteOffset + byteLength));
}
