package unlisted

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// listed is an object that the fleet has applied, as a list of its metadata has it.
const listed = `{"metadata":{"name":%q,"namespace":"app","uid":"1","labels":{"gitfleet.dev/managed-by":"prod"},"annotations":{"gitfleet.dev/placement":"crp/web"},
	"managedFields":[{"manager":"gitfleet","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`

// A few kinds whose lists do not end are named and left out, and the objects of the others are found. If
// there are many, the member is given up.
func TestEndlessKindsAreLeftOut(t *testing.T) {
	for endless, givenUp := range map[int]bool{0: false, maxExceeded: false, maxExceeded + 1: true} {
		t.Run(fmt.Sprint(endless), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path := r.URL.Path; {
				case path == "/api":
					fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
				case path == "/apis":
					fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
				case path == "/api/v1":
					var all []string
					for i := range 6 {
						all = append(all, fmt.Sprintf(`{"name":"kind%ds","kind":"Kind%d","namespaced":true,"verbs":["list","delete"]}`, i, i))
					}
					fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[%s]}`, strings.Join(all, ","))
				default:
					kind := int(path[len("/api/v1/kind")] - '0')
					next, items := "", fmt.Sprintf(listed, fmt.Sprint("of-", kind))
					if kind < endless {
						next, items = "more", ""
					} else {
						items += "," + fmt.Sprintf(listed, strings.Repeat("a", 2<<20)) // no object has such a name
					}
					fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, next, items)
				}
			}))
			defer server.Close()
			metrics := connection.NewMetrics()
			conn, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics}, &rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			found, again, err := Find(t.Context(), conn, "prod", time.Minute)
			if givenUp {
				if !connection.IsExceeded(err) || found != nil || !again {
					t.Errorf("%v, again %v, %v; want the member to be given up", found, again, err)
				}
				return
			}
			if connection.IsExceeded(err) || len(found) != 6-endless || again != (endless > 0) {
				t.Errorf("%v, again %v, %v", found, again, err)
			}
			for i := range endless {
				if want := fmt.Sprintf("list kind%ds: the API server answered with more than", i); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
		})
	}
}
