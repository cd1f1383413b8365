package connection

import (
	"net/http"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Applies and dry runs request no validation that needs a second decoding.
func TestWhatIsAppliedIsReadOnce(t *testing.T) {
	var asked []string
	c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("fieldValidation"))
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"app","uid":"1"}}`))
	}))
	id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}
	if _, err := c.Patch(t.Context(), configMapKind, id, []byte("{}"), true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DryRun(t.Context(), configMapKind, id, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, got := range asked {
		if got != "Ignore" {
			t.Errorf("asked with fieldValidation=%q", got)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d requests", len(asked))
	}
}
