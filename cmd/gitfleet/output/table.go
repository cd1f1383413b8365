package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Table has a header and rows; the first column names the row.
type Table struct {
	Header []string
	Rows   [][]string
}

// TableOf converts a Kubernetes table to text, with the columns of lower priority only if wide is
// set. An empty cell becomes a dash, so that scripts can count columns.
func TableOf(t *metav1.Table, wide bool) Table {
	var out Table
	var shown []int
	for i, c := range t.ColumnDefinitions {
		if c.Priority == 0 || wide {
			shown = append(shown, i)
			out.Header = append(out.Header, strings.ToUpper(c.Name))
		}
	}
	for _, row := range t.Rows {
		cells := make([]string, len(shown))
		for i, column := range shown {
			cells[i] = cmp.Or(fmt.Sprint(row.Cells[column]), "-")
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

// Print writes the table, with the header unless the format omits it.
func (t Table) Print(w io.Writer, f Format) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if !f.NoHeaders {
		fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	}
	room := t.room(PageOf(w))
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Sanitize(cell)
		}
		last := len(cells) - 1
		lines := []string{cells[last]}
		if room > 0 && Width(cells[last]) > room {
			lines = Wrap(cells[last], room)
		}
		for _, line := range lines {
			cells[last] = line
			fmt.Fprintln(tw, strings.Join(cells, "\t"))
			clear(cells)
		}
	}
	tw.Flush()
}

// Lines returns the header, which is empty if the format omits it, and a line for each row. It
// is for commands that print something below rows.
func (t Table) Lines(f Format) (header string, rows []string) {
	var b strings.Builder
	t.Print(&b, f)
	rows = slices.Collect(strings.Lines(b.String()))
	if f.NoHeaders {
		return "", rows
	}
	return rows[0], rows[1:]
}

// room returns the width of the last column on a terminal; zero if it is unlimited.
func (t Table) room(p Page) int {
	const least = 20
	if !p.Terminal {
		return 0
	}
	room := p.Width
	for i, name := range t.Header[:len(t.Header)-1] {
		column := Width(name)
		for _, row := range t.Rows {
			column = max(column, Width(row[i]))
		}
		room -= column + 3
	}
	return max(room, least)
}
