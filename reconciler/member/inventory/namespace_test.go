package inventory

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// If our namespace is missing, it is created before anything is written into it. It is
// requested at most once.
func TestOurNamespaceIsMadeWhereThereIsNone(t *testing.T) {
	const made, written = "/api/v1/namespaces/gitfleet-system", "/api/v1/namespaces/gitfleet-system/configmaps/"
	first := written + nameOf("prod", web)
	tests := map[string]struct {
		seen  []string // nil if it was not read
		there bool
		want  []string
	}{
		"not there":                             {[]string{"default"}, false, []string{made, first, first}},
		"there":                                 {[]string{"default", api.Namespace}, true, []string{first, first}},
		"unknown, and not there":                {nil, false, []string{first, made, first, first}},
		"unknown, and there":                    {nil, true, []string{first, first}},
		"made by somebody else in the meantime": {[]string{"default"}, true, []string{made, first, first}},
		"deleted in the meantime":               {[]string{api.Namespace}, false, []string{first, made, first, first}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, there := apiserver.NewConfigMaps(), test.there
			var asked []string
			s := storeAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				if r.URL.Path == made {
					there = true
				} else if !there {
					apiserver.Refuse(w, http.StatusNotFound, `namespaces "gitfleet-system" not found`)
					return
				}
				server.ServeHTTP(w, r)
			}))
			s.SetNamespaces(test.seen)
			inv := held(1)
			for range 2 {
				inv.Invalidate()
				save(t, s, inv)
			}
			if !slices.Equal(asked, test.want) {
				t.Errorf("asked for %q\nwant %q", asked, test.want)
			}
		})
	}
}
