// Package printer has the columns of the tables that list objects of the hub: kubectl get prints
// them from the served API, and gitfleet get from a report. Those of KubeFleet's kinds are the
// printer columns of KubeFleet's definitions; wide tables have more.
package printer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Row is one object of a table.
type Row struct {
	Meta *metav1.ObjectMeta
	// Value is the object that the columns read: a pointer to its type in placement/api, or a
	// *status.Event. Manifests and overrides need none. Columns of another kind show no value.
	Value any
	// Now is the time that ages are relative to.
	Now time.Time
	// Outline is what the status of a placement says of its clusters; nil if the object has all of it.
	Outline *status.Outline
}

// A Column is one cell of each row. Columns of priority 1 are only in wide tables.
type Column struct {
	metav1.TableColumnDefinition
	Cell func(Row) string
}

// Text returns a column of type string.
func Text(name, description string, priority int32, cell func(Row) string) Column {
	return Column{metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority}, cell}
}

// Since returns the time from t to now in its largest units, as kubectl prints ages; <unknown>
// if t is zero.
func (r Row) Since(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(r.Now.Sub(t))
}

// Table returns the table of rows, without the objects in them.
func Table(columns []Column, rows []Row) *metav1.Table {
	t := &metav1.Table{Rows: make([]metav1.TableRow, 0, len(rows))}
	for _, c := range columns {
		t.ColumnDefinitions = append(t.ColumnDefinitions, c.TableColumnDefinition)
	}
	for _, r := range rows {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = c.Cell(r)
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return t
}
