package postbuild

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsName reports whether a variable can have a name.
func IsName(name string) bool { return nameForm.MatchString(name) }

var errUnclosed = errors.New("a variable lacks its closing bracket; write ${NAME}, or $${ for the text ${")

// A part is a piece of a text: a literal one, or a variable if it has a name.
type part struct {
	text, name string
	// fallback is the value of a variable that has none, or an empty one, if hasFallback is set.
	fallback    []part
	hasFallback bool
	// change changes the value; nil leaves it.
	change func(string) string
}

// parse splits a text into its parts. $$ stands for a dollar sign, so that $${name} is the text ${name}.
func parse(text string) ([]part, error) {
	p := parser{rest: text}
	return p.parts(false)
}

// maxNested limits how deeply defaults are nested, since each level takes space on the stack.
const maxNested = 20

var errNested = fmt.Errorf("defaults are nested deeper than %d levels; write fewer", maxNested)

type parser struct {
	rest string
	// nested are the defaults around the rest.
	nested int
}

// parts reads parts until the end or, in the default of a variable, until the bracket that closes the variable.
func (p *parser) parts(within bool) (parts []part, err error) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{text: literal.String()})
			literal.Reset()
		}
	}
	for p.rest != "" {
		switch {
		case within && p.rest[0] == '}':
			p.rest = p.rest[1:]
			flush()
			return parts, nil
		case !within && strings.HasPrefix(p.rest, "$$"): // which Flux leaves in a default
			literal.WriteByte('$')
			p.rest = p.rest[2:]
		case strings.HasPrefix(p.rest, "${"):
			flush()
			p.rest = p.rest[2:]
			v, err := p.variable()
			if err != nil {
				return nil, err
			}
			parts = append(parts, v)
		default:
			_, n := utf8.DecodeRuneInString(p.rest)
			literal.WriteString(p.rest[:n])
			p.rest = p.rest[n:]
		}
	}
	flush()
	if within {
		return nil, errUnclosed
	}
	return parts, nil
}

// variable reads a variable behind its opening bracket.
func (p *parser) variable() (v part, err error) {
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	if end < 0 {
		return v, errUnclosed
	}
	v.name = p.rest[:end]
	rest := p.rest[end:]
	if !IsName(v.name) {
		return v, p.unknown(p.rest)
	}
	for _, operator := range []string{":-", ":=", "="} {
		if after, is := strings.CutPrefix(rest, operator); is {
			if p.nested == maxNested {
				return v, errNested
			}
			p.rest, v.hasFallback = after, true
			p.nested++
			v.fallback, err = p.parts(true)
			p.nested--
			return v, err
		}
	}
	function, after, closed := strings.Cut(rest, "}")
	if !closed {
		return v, errUnclosed
	}
	if function != "" {
		if v.change = changeOf(function); v.change == nil || strings.Contains(function, "${") { // Flux replaces variables there as well
			return v, p.unknown(p.rest)
		}
	}
	p.rest = after
	return v, nil
}

// unknown returns the error about a variable that cannot be read.
func (p *parser) unknown(inside string) error {
	inside, _, _ = strings.Cut(inside, "}")
	if len(inside) > 40 {
		inside = inside[:40] + "..."
	}
	return fmt.Errorf("${%s} is not known; write ${NAME}, ${NAME:=DEFAULT}, ${NAME:POSITION:LENGTH}, ${NAME/OLD/NEW} or ${NAME^^}, or $${%s} for the text", inside, inside)
}

// changeOf returns what a function of a variable does with its value; nil if it is not known.
func changeOf(function string) func(string) string {
	switch function {
	case "^^":
		return strings.ToUpper
	case ",,":
		return strings.ToLower
	case "^":
		return func(v string) string { return onFirst(v, strings.ToUpper) }
	case ",":
		return func(v string) string { return onFirst(v, strings.ToLower) }
	}
	if arguments, is := strings.CutPrefix(function, ":"); is {
		return cutter(arguments)
	}
	if arguments, is := strings.CutPrefix(function, "/"); is {
		return replacer(arguments)
	}
	return nil
}

func onFirst(v string, change func(string) string) string {
	_, n := utf8.DecodeRuneInString(v)
	return change(v[:n]) + v[n:]
}

// cutter returns the function of POSITION or POSITION:LENGTH.
func cutter(arguments string) func(string) string {
	first, second, limited := strings.Cut(arguments, ":")
	position, err := strconv.Atoi(first)
	if err != nil || position < 0 {
		return nil
	}
	length, err := strconv.Atoi(second)
	if limited && (err != nil || length < 0) {
		return nil
	}
	return func(v string) string {
		v = v[min(position, len(v)):]
		if limited {
			v = v[:min(length, len(v))]
		}
		return v
	}
}

// replacer returns the function of OLD/NEW, the first; /OLD/NEW, all; #OLD/NEW, at the beginning; or %OLD/NEW, at the end.
func replacer(arguments string) func(string) string {
	where := ""
	if arguments != "" && strings.Contains("/#%", arguments[:1]) {
		where, arguments = arguments[:1], arguments[1:]
	}
	old, with, complete := cutEscaped(arguments)
	if !complete || old == "" {
		return nil
	}
	switch where {
	case "/":
		return func(v string) string { return strings.ReplaceAll(v, old, with) }
	case "#":
		return func(v string) string {
			if rest, is := strings.CutPrefix(v, old); is {
				return with + rest
			}
			return v
		}
	case "%":
		return func(v string) string {
			if rest, is := strings.CutSuffix(v, old); is {
				return rest + with
			}
			return v
		}
	}
	return func(v string) string { return strings.Replace(v, old, with, 1) }
}

// cutEscaped cuts at the first slash; \/ stands for one, and \\ for a backslash.
func cutEscaped(text string) (old, with string, found bool) {
	unescape := strings.NewReplacer(`\/`, "/", `\\`, `\`)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '/':
			return unescape.Replace(text[:i]), unescape.Replace(text[i+1:]), true
		}
	}
	return "", "", false
}
