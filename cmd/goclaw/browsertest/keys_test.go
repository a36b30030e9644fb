package browsertest

import "github.com/chromedp/chromedp/kb"

const (
	arrowUp    = kb.ArrowUp
	arrowDown  = kb.ArrowDown
	arrowLeft  = kb.ArrowLeft
	arrowRight = kb.ArrowRight
	escape     = kb.Escape
	tabKey     = kb.Tab
)
