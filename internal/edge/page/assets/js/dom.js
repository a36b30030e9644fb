// The one place that names the vendored libraries.
import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { h, render, Fragment };
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback } from "../vendor/preact-hooks.js";

// memo draws a view again only when its properties have changed.
export function memo(view) {
  return function Memo(props) {
    this.shouldComponentUpdate = (next) => {
      for (const k of new Set([...Object.keys(this.props), ...Object.keys(next)])) if (!Object.is(this.props[k], next[k])) return true;
      return false;
    };
    return h(view, props);
  };
}
