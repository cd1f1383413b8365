package kubeapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
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
	rows := make([]printer.Row, len(objects))
	for i, o := range objects {
		rows[i] = printer.Row{Meta: &o.ObjectMeta, Value: o.Value, Now: now}
	}
	t := printer.Table(s.kind.columns, rows)
	t.ListMeta = meta
	for i, o := range objects {
		t.Rows[i].Object.Object = o
	}
	if o, ok := options.(*metav1.TableOptions); ok && o.NoHeaders {
		t.ColumnDefinitions = nil
	}
	return t, nil
}
