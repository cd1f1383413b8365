package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Writer is where a command writes its text. It is the one way to a terminal: characters that
// could move the cursor, hide text or change the direction of writing are written as escapes
// such as \u202e, wherever the text came from. Line breaks and tabs pass, and so do the styles of
// Page.Paint, which become escape sequences on a terminal only.
type Writer struct {
	to       io.Writer
	terminal bool
	// size returns the size of a terminal.
	size func() (width, height int, err error)
	// partial is the beginning of a character whose rest comes with the next write.
	partial []byte
}

// NewWriter returns a writer to a destination.
func NewWriter(to io.Writer) *Writer {
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &Writer{to: to, terminal: true, size: func() (int, int, error) { return term.GetSize(int(f.Fd())) }}
	}
	return &Writer{to: to}
}

// Write implements io.Writer.
func (w *Writer) Write(text []byte) (int, error) {
	whole := append(w.partial, text...)
	end := len(whole)
	for begin := end - 1; begin >= max(0, end-utf8.UTFMax); begin-- {
		if utf8.RuneStart(whole[begin]) {
			if !utf8.FullRune(whole[begin:]) {
				end = begin
			}
			break
		}
	}
	var b strings.Builder
	for rest := whole[:end]; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		w.writeRune(&b, r, rest[:size])
		rest = rest[size:]
	}
	w.partial = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(w.to, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (w *Writer) writeRune(b *strings.Builder, r rune, raw []byte) {
	style, painted := styleOf(r)
	switch {
	case painted && w.terminal:
		b.WriteString("\033[" + string(style) + "m")
	case painted:
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r == '\n', r == '\t', unicode.IsPrint(r):
		b.WriteRune(r)
	case r > 0xFFFF: // as JSON writes it
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// control writes control sequences, if the destination is a terminal.
func (w *Writer) control(sequence string) error {
	if !w.terminal {
		return nil
	}
	_, err := io.WriteString(w.to, sequence)
	return err
}

// Raw returns the destination of documents that another program reads: they are written
// unchanged, except to a terminal.
func Raw(w io.Writer) io.Writer {
	if own, ok := w.(*Writer); ok && !own.terminal {
		return own.to
	}
	return w
}
