package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"github.com/muesli/cancelreader"
)

var (
	// ErrEnd says that the input ended before the question was answered.
	ErrEnd = errors.New("the input ended before everything was answered")
	// ErrInterrupted is Ctrl-C while text is typed unseen.
	ErrInterrupted = errors.New("interrupted")
)

// Asker asks. It is for one goroutine at a time.
type Asker struct {
	in     cancelreader.CancelReader
	lines  *bufio.Reader
	file   *os.File // nil unless the input is a terminal
	out    io.Writer
	broken error // of writing
}

// New returns an Asker that must be closed. Closing leaves in open.
func New(in io.Reader, out io.Writer) (*Asker, error) {
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	a := &Asker{in: r, lines: bufio.NewReader(r), out: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(f.Fd()) {
		a.file = f
	}
	return a, nil
}

// Close gives the input back.
func (a *Asker) Close() error { return a.in.Close() }

// Say writes a line.
func (a *Asker) Say(format string, args ...any) { a.write(fmt.Sprintf(format, args...) + "\n") }

func (a *Asker) write(s string) {
	if _, err := io.WriteString(a.out, s); err != nil && a.broken == nil {
		a.broken = fmt.Errorf("ask: %w", err)
	}
}

// Line asks for a line; an empty answer is the default.
func (a *Asker) Line(ctx context.Context, question, standard string) (string, error) {
	if standard != "" {
		question += " [" + standard + "]"
	}
	a.write(question + ": ")
	line, err := a.line(ctx)
	if err != nil {
		return "", err
	}
	if line == "" {
		line = standard
	}
	return line, nil
}

// Yes asks for yes or no until it gets one of them.
func (a *Asker) Yes(ctx context.Context, question string, standard bool) (bool, error) {
	choices := " [y/N]: "
	if standard {
		choices = " [Y/n]: "
	}
	for {
		a.write(question + choices)
		line, err := a.line(ctx)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(line) {
		case "":
			return standard, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		a.Say("Please answer y or n.")
	}
}

// Choose asks for one of the options, by its number, and returns its index.
func (a *Asker) Choose(ctx context.Context, question string, options []string, standard int) (int, error) {
	a.Say("%s", question)
	for i, o := range options {
		a.Say("  %d  %s", i+1, o)
	}
	for {
		line, err := a.Line(ctx, "Number", strconv.Itoa(standard+1))
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
		a.Say("Please answer with a number from 1 to %d.", len(options))
	}
}

// Hidden asks for a line that the terminal does not show.
func (a *Asker) Hidden(ctx context.Context, question string) (line string, err error) {
	if a.file == nil {
		a.write(question + ": ")
		return a.line(ctx)
	}
	was, err := term.MakeRaw(a.file.Fd())
	if err != nil {
		return "", fmt.Errorf("hide what is typed: %w", err)
	}
	defer func() {
		err = errors.Join(err, term.Restore(a.file.Fd(), was))
		a.write("\n")
	}()
	a.write(question + ": ") // only now: what is typed at once is not shown either
	return a.unseen(ctx)
}

// The keys that a raw terminal sends.
const (
	ctrlC     = 0x03
	ctrlD     = 0x04
	backspace = 0x08
	ctrlU     = 0x15
	escape    = 0x1b
	del       = 0x7f
)

func (a *Asker) unseen(ctx context.Context) (string, error) {
	var typed []byte
	for {
		b, err := a.byte(ctx)
		if err != nil {
			return "", err
		}
		switch b {
		case '\r', '\n':
			return strings.TrimSpace(string(typed)), nil
		case ctrlC:
			return "", ErrInterrupted
		case ctrlD:
			if len(typed) == 0 {
				return "", ErrEnd
			}
		case ctrlU:
			typed = typed[:0]
		case backspace, del:
			_, size := utf8.DecodeLastRune(typed)
			typed = typed[:len(typed)-size]
		case escape:
			a.skipSequence()
		default:
			typed = append(typed, b)
		}
	}
}

// skipSequence drops what follows an escape: an arrow key, or the brackets
// that a terminal puts around what is pasted.
func (a *Asker) skipSequence() {
	for a.lines.Buffered() > 0 {
		b, err := a.lines.ReadByte()
		if err != nil || b != '[' && (b < '0' || b > '9') && b != ';' && b != 'O' {
			return
		}
	}
}

// line reads a line. One in which an arrow key or its like was pressed is asked
// for again: what such a key sends is part of no answer.
func (a *Asker) line(ctx context.Context) (string, error) {
	for {
		var line string
		err := a.reading(ctx, func() (err error) {
			line, err = a.lines.ReadString('\n')
			return err
		})
		if errors.Is(err, ErrEnd) && line != "" {
			err = nil
		}
		switch {
		case err != nil:
			return "", err
		case !strings.ContainsRune(line, escape):
			return strings.TrimSpace(line), nil
		}
		a.write("Arrow keys do nothing here. Please type it: ")
	}
}

func (a *Asker) byte(ctx context.Context) (b byte, err error) {
	err = a.reading(ctx, func() (err error) {
		b, err = a.lines.ReadByte()
		return err
	})
	return b, err
}

// reading reads until ctx ends.
func (a *Asker) reading(ctx context.Context, read func() error) error {
	if a.broken != nil {
		return a.broken
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stop := context.AfterFunc(ctx, func() { a.in.Cancel() })
	defer stop()
	err := read()
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return ErrEnd
	case err != nil:
		return fmt.Errorf("read answers: %w", err)
	}
	return nil
}
