package account

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// An account that belongs to another member or fleet, or that somebody else made, is neither changed
// nor removed.
func TestAccountsOfOthersAreLeftAlone(t *testing.T) {
	ours := map[string]string{managedBy: fieldManager}
	tests := map[string]struct {
		labels, annotations map[string]string
		refused             bool
	}{
		"the member's":     {ours, map[string]string{memberAnnotation: "paris"}, false},
		"any member's":     {ours, nil, false},
		"another member's": {ours, map[string]string{memberAnnotation: "oslo"}, true},
		"somebody else's":  {nil, nil, true},
		"the fleet's":      {ours, map[string]string{memberAnnotation: "paris", fleetAnnotation: "shop"}, false},
		"another fleet's":  {ours, map[string]string{memberAnnotation: "paris", fleetAnnotation: "infra"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodGet {
					writes++
				}
				json.NewEncoder(w).Encode(rbacv1.ClusterRole{
					TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
					ObjectMeta: metav1.ObjectMeta{Name: "gitfleet", Labels: test.labels, Annotations: test.annotations},
				})
			}))
			defer srv.Close()
			err := Account{Name: "gitfleet", Member: "paris", Fleet: "shop"}.Remove(t.Context(), &rest.Config{Host: srv.URL})
			var owned *OwnedError
			if errors.As(err, &owned) != test.refused || (writes == 0) != test.refused {
				t.Errorf("%d writes, %v", writes, err)
			}
		})
	}
}
