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
		takesOver       bool
	}{
		"immutable, and it asks":          {true, true, invalid, nil, "refused", false},
		"immutable, and it does not":      {false, true, invalid, nil, "refused" + adviceToRecreate, false},
		"for another reason, and it asks": {true, false, invalid, nil, "refused" + noRecreation, false},
		"for another reason":              {false, false, invalid, nil, "refused", false},
		"a missing permission":            {true, false, apiserver.Refusal(http.StatusForbidden, "not for you"), nil, "refused", false},
		"a rule that cannot be read":      {true, false, invalid, errors.New("forbidden"), "refused; it is not deleted to be created anew, since the rule that refused it cannot be read: forbidden", false},
		"taken over, and it asks":         {true, true, invalid, nil, "refused" + notAppliedBefore, true},
		"taken over":                      {false, true, invalid, nil, "refused", true},
		"taken over, for another reason":  {true, false, invalid, errors.New("forbidden"), "refused", true},
	} {
		m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "web"}})
		if test.asks {
			m.Object.Content.SetAnnotations(map[string]string{api.RecreateAnnotation: api.RecreateEnabled})
		}
		if got := ExplainRecreation("refused", m, test.takesOver, test.err, test.immutable, test.unread); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
