package apply

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A refused object says how to have it recreated, or why it is not although it asks for that.
func TestRefusedObjectExplainsRecreation(t *testing.T) {
	invalid := apiserver.Refusal(http.StatusUnprocessableEntity, "no")
	for name, test := range map[string]struct {
		asks, immutable bool
		err, unread     error
		want            string
	}{
		"immutable, and it asks":          {true, true, invalid, nil, "refused"},
		"immutable, and it does not":      {false, true, invalid, nil, "refused" + adviceToRecreate},
		"for another reason, and it asks": {true, false, invalid, nil, "refused" + noRecreation},
		"for another reason":              {false, false, invalid, nil, "refused"},
		"a missing permission":            {true, false, apiserver.Refusal(http.StatusForbidden, "not for you"), nil, "refused"},
		"a rule that cannot be read":      {true, false, invalid, errors.New("forbidden"), "refused; it is not deleted to be created anew, since the rule that refused it cannot be read: forbidden"},
	} {
		m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "web"}})
		if test.asks {
			m.Object.Content.SetAnnotations(map[string]string{api.RecreateAnnotation: api.RecreateEnabled})
		}
		if got := ExplainRecreation("refused", m, test.err, test.immutable, test.unread); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
