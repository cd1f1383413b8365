package view

import (
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// placementTable lists the placements of a report. Names are qualified with their kind; if they
// are not, ResourcePlacements have a column for the namespace.
func placementTable(r *status.Report, wide, qualified bool) output.Table {
	rows := make([]printer.Row, 0, len(r.Placements)+len(r.ResourcePlacements))
	for _, p := range r.Placements {
		rows = append(rows, printer.Row{Meta: &p.ObjectMeta, Value: p, Now: r.At})
	}
	for _, p := range r.ResourcePlacements {
		rows = append(rows, printer.Row{Meta: &p.ObjectMeta, Value: p, Now: r.At})
	}
	columns := named(printer.Placements, qualified)
	if !qualified && len(r.ResourcePlacements) > 0 {
		columns = append([]printer.Column{namespace}, columns...)
	}
	return output.TableOf(printer.Table(columns, rows), wide)
}

func clusterTable(r *status.Report, wide, qualified bool) output.Table {
	rows := make([]printer.Row, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		rows = append(rows, printer.Row{Meta: &c.ObjectMeta, Value: c, Now: r.At})
	}
	return output.TableOf(printer.Table(named(printer.Clusters, qualified), rows), wide)
}

// named returns columns that begin with the name, which may be qualified.
func named(columns []printer.Column, qualified bool) []printer.Column {
	if !qualified {
		return columns
	}
	return append([]printer.Column{{TableColumnDefinition: printer.Name.TableColumnDefinition, Cell: qualifiedName}}, columns[1:]...)
}

// qualifiedName returns the name of an object with its kind, as commands take it.
func qualifiedName(r printer.Row) string {
	if _, cluster := r.Value.(*api.MemberCluster); cluster {
		return "mc/" + r.Meta.Name
	}
	return api.PlacementKey{Namespace: r.Meta.Namespace, Name: r.Meta.Name}.String()
}

// namespace is the column that kubectl adds for objects of several namespaces.
var namespace = printer.Text("Namespace", "Namespace of the object.", 0, func(r printer.Row) string { return r.Meta.Namespace })
