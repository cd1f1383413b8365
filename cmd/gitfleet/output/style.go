package output

// A Style is the ANSI style of a text on a terminal.
type Style string

// The styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// painted are the styles that a Writer knows, each as the noncharacter of Unicode that begins it
// in a text. Noncharacters have no meaning outside of a program, so that a text from elsewhere
// cannot be taken for more than a color.
var painted = []Style{reset, Bold, Dim, Red, Green, Yellow, Cyan}

const (
	reset       Style = "0"
	firstMarker rune  = '\uFDD0'
)

func styleOf(r rune) (Style, bool) {
	if i := int(r - firstMarker); i >= 0 && i < len(painted) {
		return painted[i], true
	}
	return Plain, false
}

func markerOf(s Style) string {
	for i, known := range painted {
		if s == known {
			return string(firstMarker + rune(i))
		}
	}
	return ""
}
