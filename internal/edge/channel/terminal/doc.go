// Package terminal is the chat screen that `goclaw chat` shows: one
// conversation, the workers that it started, and an input line.
//
// It decides nothing. Messages and slash commands go to a Backend (the gateway
// in this process, or one behind HTTP), which answers with receipts and a
// stream of notices; the screen folds these into a state (apply) and draws it
// (view). The state is plain data and is tested without a terminal; only program.go,
// terminal.go and pump.go know Bubble Tea, and only pump.go and program.go call
// the backend.
//
// Invariants:
//   - Text from models, tools and peers never reaches the terminal as it is:
//     every rune that could steer one is removed (clean), and no line is wider
//     than the screen.
//   - Only the 16 palette colours and attributes are used, so that the user's
//     theme decides, on light and dark backgrounds alike.
//   - Every goroutine has ended when Run returns, and the terminal is as it
//     was found.
//
// It refuses to render anything but Markdown as text: no images, no HTML, no
// hyperlink escapes, no syntax colours.
package terminal
