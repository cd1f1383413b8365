package kubeapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// ConvertToTable implements rest.TableConvertor.
func (s *storage) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	var objects []*store.Object
	var meta metav1.ListMeta
	switch o := object.(type) {
	case *store.Object:
		objects = []*store.Object{o}
		meta.ResourceVersion = o.ResourceVersion
	case *list:
		objects = o.Items
		meta = o.ListMeta
	default:
		return nil, fmt.Errorf("no table can be made of a %T", object)
	}
	now := time.Now()
	columns := s.kind.columnsOf(s.version)
	t := printer.Table(columns, nil)
	t.ListMeta = meta
	for _, o := range objects {
		row := printer.Row{Meta: &o.ObjectMeta, Value: o.Value, Now: now}
		if placement, ok := o.Value.(interface{ row() (any, *status.Outline) }); ok {
			row.Value, row.Outline = placement.row()
		}
		cells := printer.Table(columns, []printer.Row{row}).Rows[0]
		cells.Object.Object = o
		t.Rows = append(t.Rows, cells)
	}
	if o, ok := options.(*metav1.TableOptions); ok && o.NoHeaders {
		t.ColumnDefinitions = nil
	}
	return t, nil
}
