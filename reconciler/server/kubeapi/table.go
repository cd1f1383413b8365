package kubeapi

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// ConvertToTable implements rest.TableConvertor.
func (s *storage) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{}
	var objects []*store.Object
	switch o := object.(type) {
	case *store.Object:
		objects = []*store.Object{o}
		t.ResourceVersion = o.ResourceVersion
	case *list:
		objects = o.Items
		t.ListMeta = o.ListMeta
	default:
		return nil, fmt.Errorf("no table can be made of a %T", object)
	}
	columns := s.kind.columns
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		for _, c := range columns {
			t.ColumnDefinitions = append(t.ColumnDefinitions, c.TableColumnDefinition)
		}
	}
	t.Rows = make([]metav1.TableRow, 0, len(objects))
	for _, o := range objects {
		row := metav1.TableRow{Cells: make([]any, len(columns)), Object: runtime.RawExtension{Object: o}}
		for i, c := range columns {
			row.Cells[i] = c.cell(o)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
