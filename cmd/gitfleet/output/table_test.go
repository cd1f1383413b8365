package output

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Kubernetes table reads as kubectl prints it, but that no cell is empty.
func TestTableOf(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Type", Priority: 1}, {Name: "Scheduled-Gen"}},
		Rows:              []metav1.TableRow{{Cells: []any{"web", "PickN", "3"}}, {Cells: []any{"idle", "", ""}}},
	}
	for name, test := range map[string]struct {
		wide   bool
		format Format
		want   string
	}{
		"narrow":           {false, Format{}, "NAME   SCHEDULED-GEN\nweb    3\nidle   -\n"},
		"wide":             {true, Format{}, "NAME   TYPE    SCHEDULED-GEN\nweb    PickN   3\nidle   -       -\n"},
		"without a header": {false, Format{NoHeaders: true}, "web    3\nidle   -\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			TableOf(table, test.wide).Print(&out, test.format)
			if out.String() != test.want {
				t.Errorf("got\n%swant\n%s", &out, test.want)
			}
		})
	}
}
