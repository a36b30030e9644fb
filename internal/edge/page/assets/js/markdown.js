// Markdown as elements. markdown-it only parses: its tokens become elements
// with text nodes, and no text is ever read as HTML.
import MarkdownIt from "../vendor/markdown-it.js";
import { h } from "./dom.js";
import { Copyable } from "./copy.js";
import { clean } from "./format.js";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false });
const allowed = /^(?:https?:|mailto:)/i;

// Pictures are links: showing one would tell its host that somebody reads.
const tags = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "hr", "br"]);

const longest = 200_000; // characters; a longer text is shown as it is

export function Markdown({ text }) {
  const safe = clean(text);
  if (safe.length > longest) return h("pre", { class: "raw", dir: "auto" }, safe);
  return h("div", { class: "md", dir: "auto" }, tree(parser.parse(safe, {})));
}

// tree turns the flat list of tokens into nested elements.
function tree(tokens) {
  const top = [];
  const open = [{ children: top }];
  const here = () => open.at(-1).children;
  for (const [i, t] of tokens.entries()) {
    if (t.hidden) continue;
    if (t.type === "inline" && tokens[i - 2]?.type === "list_item_open") task(t.children[0]);
    if (t.nesting === 1) open.push(begin(t));
    else if (t.nesting === -1) {
      if (open.length > 1) end(open);
    } else leaf(t, here());
  }
  while (open.length > 1) end(open);
  return top;
}

function begin(t) {
  if (t.tag === "a") {
    const href = t.attrGet("href") ?? "";
    return allowed.test(href) ? { tag: "a", props: link(href), children: [] } : { tag: "span", props: {}, children: [] };
  }
  const props = {};
  if (t.tag === "ol" && t.attrGet("start")) props.start = Number(t.attrGet("start"));
  const align = /text-align:(left|right|center)/.exec(t.attrGet("style") ?? "");
  if (align) props.class = "to-" + align[1];
  return { tag: tags.has(t.tag) ? t.tag : "div", props, children: [] };
}

const link = (href) => ({ href, target: "_blank", rel: "noopener noreferrer nofollow" });

function end(open) {
  const { tag, props, children } = open.pop();
  const el = h(tag, props, ...children);
  // A wide table scrolls by itself, not with the page.
  open.at(-1).children.push(tag === "table" ? h("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": "table" }, el) : el);
}

// task draws the box of a list's item that has one.
function task(t) {
  if (t?.type === "text") t.content = t.content.replace(/^\[([ xX])\]\s/, (_, x) => (x === " " ? "☐ " : "☑ "));
}

const language = (t) => `code ${(t.info ?? "").split(/\s/)[0]}`.trim();

function leaf(t, into) {
  switch (t.type) {
    case "inline":
      into.push(...tree(t.children));
      break;
    case "text":
    case "text_special":
      if (t.content) into.push(t.content);
      break;
    case "softbreak":
      into.push("\n");
      break;
    case "hardbreak":
      into.push(h("br"));
      break;
    case "code_inline":
      into.push(h("code", null, t.content));
      break;
    case "fence":
    case "code_block":
      into.push(h(Copyable, { text: t.content, label: "Copy the code" }, h("pre", { tabIndex: 0, dir: "ltr", role: "group", "aria-label": language(t) }, h("code", null, t.content))));
      break;
    case "hr":
      into.push(h("hr"));
      break;
    case "image": {
      const src = t.attrGet("src") ?? "";
      const label = `[picture: ${t.content || src}]`;
      into.push(allowed.test(src) ? h("a", link(src), label) : label);
      break;
    }
    default:
      if (t.content) into.push(t.content);
  }
}
