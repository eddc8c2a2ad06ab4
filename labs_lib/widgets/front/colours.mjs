// One look for all explorers: cividis, line and bar colours of both themes, ink that can be read.

const CIVIDIS = (
  "00224d00234f00235000245200255400265500265700275900285b00285c00295e002a60002a62002b64002c66" +
  "002c67002d69002e6b002f6d002f6f0030700030700031700031700432700833700b33700e347011356f14366f" +
  "16366f18376f1a386f1c386e1d396e1f3a6e213b6e223b6e243c6e253d6d273d6d283e6d2a3f6d2b3f6d2c406d" +
  "2e416c2f426c30426c31436c32446c34446c35456c36466c37466c38476c39486c3a486b3b496b3d4a6b3e4b6b" +
  "3f4b6b404c6b414d6b424d6b434e6b444f6b454f6b46506b47516b48516b49526b4a536b4b546c4c546c4d556c" +
  "4e566c4e566c4f576c50586c51586c52596c535a6c545a6c555b6d565c6d575d6d585d6d595e6d595f6d5a5f6d" +
  "5b606e5c616e5d616e5e626e5f636e60646e61646f61656f62666f63666f64676f656870666970676970686a70" +
  "686b71696b716a6c716b6d716c6d726d6e726e6f726e70736f7073707173717273727374737374747475747575" +
  "7575757676767777767878767978777979777a7a777b7b777c7b787d7c787e7d787f7d78807e78817f78828078" +
  "8380788481788582788583788683788784788885788986788a86788b87788c88788d89788e89788f8a77908b77" +
  "918c77928c77938d77948e77958f77968f779790769891769992769a93769b93769c94769d95759e96759f9675" +
  "a09775a19874a29974a39a74a49a74a59b73a69c73a79d73a89e73a99e72aa9f72aba072aca171ada271aea271" +
  "afa370b0a470b1a570b2a66fb3a66fb4a76fb5a86eb6a96eb7aa6db8ab6db9ab6dbaac6cbbad6cbcae6bbdaf6b" +
  "beb06abfb06ac1b169c2b269c3b368c4b468c5b567c6b567c7b666c8b765c9b865cab964cbba64ccbb63cdbc62" +
  "cebc62cfbd61d0be60d2bf60d3c05fd4c15ed5c25ed6c35dd7c35cd8c45bd9c55adac65adbc759dcc858dec957" +
  "dfca56e0cb55e1cc54e2cc53e3cd52e4ce51e5cf50e6d04fe8d14ee9d24dead34cebd44becd54aedd648eed747" +
  "efd846f1d944f2da43f3da42f4db40f5dc3ff6dd3df8de3bf9df3afae038fbe136fde234fde333fde534fde636" +
  "fde737"
).match(/.{6}/g).map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

// In order as in labs_lib/plots/style.py; each has a contrast of at least 4.5 on its paper.
const ON_LIGHT = ["#00449e", "#b85500", "#00795c", "#8a3f8f", "#5c5c5c", "#a11d2c"];
const ON_DARK = ["#7fb2ff", "#ffa85c", "#4fd1a5", "#e0a3e6", "#b8b8b8", "#ff9097"];

// The colour of a share from 0 to 1, as [red, green, blue].
function cividis(share) {
  const at = Math.round(255 * Math.min(1, Math.max(0, share)));
  return CIVIDIS[Number.isFinite(at) ? at : 0];
}

function css([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

// "#rrggbb", "rgb(...)" or "rgba(...)" as [red, green, blue].
function rgb(colour) {
  if (Array.isArray(colour)) return colour;
  if (colour.startsWith("#")) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

// Relative luminance, from 0 (black) to 1 (white); WCAG 2.2.
function luminance(colour) {
  const [red, green, blue] = rgb(colour).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Black or white, whichever stands out more on this colour.
function ink_on(colour) {
  return luminance(colour) > 0.179 ? "#111111" : "#ffffff";
}

// A colour laid thinly on paper: strength 1 is full, 0 is paper.
function tint(colour, paper, strength) {
  const [over, under] = [rgb(colour), rgb(paper)];
  return css(over.map((part, i) => Math.round(strength * part + (1 - strength) * under[i])));
}

// What the page looks like now: the notebook's own colours and fonts, light or dark.
function theme_of(root) {
  const style = getComputedStyle(root);
  const paper = rgb(style.backgroundColor);
  const dark = luminance(paper) < 0.4;
  return {
    dark,
    paper: css(paper),
    ink: dark ? "#f0f0f0" : "#1b1b1b",
    faint: dark ? "#4a4a4a" : "#d9d9d9",
    grey: dark ? "#9a9a9a" : "#6f6f6f",
    colours: dark ? ON_DARK : ON_LIGHT,
    font: style.fontFamily,
  };
}
