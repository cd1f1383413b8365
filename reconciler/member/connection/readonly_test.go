package connection

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

type answers struct{ asked int }

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A read-only transport refuses everything that could write, or give access to a workload,
// before it is sent.
func TestReadOnlyCannotWrite(t *testing.T) {
	const cm = "/api/v1/namespaces/shop/configmaps/one"
	tests := map[string]struct {
		method, path string
		header       string
		passes       bool
	}{
		"get":                        {http.MethodGet, cm, "", true},
		"head":                       {http.MethodHead, cm, "", true},
		"list and watch":             {http.MethodGet, "/api/v1/configmaps?watch=true", "", true},
		"dry run":                    {http.MethodPatch, cm + "?dryRun=All&fieldManager=gitfleet&force=true", "", true},
		"patch":                      {http.MethodPatch, cm + "?fieldManager=gitfleet", "", false},
		"dry run of nothing":         {http.MethodPatch, cm + "?dryRun=", "", false},
		"dry run twice":              {http.MethodPatch, cm + "?dryRun=All&dryRun=", "", false},
		"dry run in other words":     {http.MethodPatch, cm + "?dryrun=All", "", false},
		"put":                        {http.MethodPut, cm, "", false},
		"put, dry":                   {http.MethodPut, cm + "?dryRun=All", "", false},
		"post":                       {http.MethodPost, "/api/v1/namespaces/shop/configmaps", "", false},
		"post, dry":                  {http.MethodPost, "/api/v1/namespaces/shop/configmaps?dryRun=All", "", true},
		"a token, dry":               {http.MethodPost, "/api/v1/namespaces/shop/serviceaccounts/web/token?dryRun=All", "", false},
		"an eviction, dry":           {http.MethodPost, "/api/v1/namespaces/shop/pods/web/eviction?dryRun=All", "", false},
		"a review of a permission":   {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", true},
		"another review":             {http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", false},
		"delete":                     {http.MethodDelete, cm, "", false},
		"delete, dry":                {http.MethodDelete, cm + "?dryRun=All", "", false},
		"connect":                    {http.MethodConnect, cm, "", false},
		"exec by a get":              {http.MethodGet, "/api/v1/namespaces/shop/pods/web/exec?command=rm", "", false},
		"a node's proxy":             {http.MethodGet, "/api/v1/nodes/one/proxy/run", "", false},
		"a service's proxy":          {http.MethodGet, "/api/v1/namespaces/shop/services/web/proxy", "", false},
		"upgrade":                    {http.MethodGet, cm, "websocket", false},
		"an object with such a name": {http.MethodGet, "/api/v1/namespaces/shop/configmaps/proxy", "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := &answers{}
			req := httptest.NewRequest(test.method, "https://east.example"+test.path, strings.NewReader("{}"))
			if test.header != "" {
				req.Header.Set("Upgrade", test.header)
			}
			_, err := ReadOnly(server).RoundTrip(req)
			if (err == nil) != test.passes || (server.asked == 1) != test.passes {
				t.Errorf("asked %d times, %v", server.asked, err)
			}
		})
	}
}
