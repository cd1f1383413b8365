package connection

import "fmt"

// objectValues and pageValues are the maximum numbers of JSON values in an object and in a page: as Go values, small ones are a
// hundred times larger than their text. pageItems is the maximum number of objects in a page, which are larger still.
const (
	objectValues = 400_000
	pageValues   = 1_000_000
	pageItems    = 20_000
)

// A valueCounter counts the values of a JSON text that is read in pieces, and the objects of its list.
type valueCounter struct {
	most          int // the maximum number of values
	values, items int
	depth         int
	text, escaped bool // the last piece ended in a string, or after a backslash
}

// count continues with a piece, and returns the limit that the text exceeds; empty if none.
func (c *valueCounter) count(piece []byte) (limit string) {
	for _, b := range piece {
		if c.text {
			switch {
			case c.escaped:
				c.escaped = false
			case b == '\\':
				c.escaped = true
			case b == '"':
				c.text = false
			}
			continue
		}
		switch b {
		case '"':
			c.text = true
		case ',':
			c.values++
		case '[', '{':
			c.depth++
			c.values++
			if c.depth == 3 && b == '{' { // {"items":[{
				c.items++
			}
		case ']', '}':
			c.depth--
		}
	}
	switch {
	case c.values > c.most:
		return fmt.Sprintf("%d values in one answer", c.most)
	case c.items > pageItems:
		return fmt.Sprintf("%d objects in one answer", pageItems)
	}
	return ""
}
