package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The dry run of a new Service leaves out what the old one has allocated, and only that.
func TestDryRunOfANewServiceOmitsAllocatedFields(t *testing.T) {
	for name, test := range map[string]struct{ service, live, want string }{
		"another address": {`"clusterIP":"10.0.0.2"`, `"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]`, `"clusterIP":"10.0.0.2"`},
		"the same":        {`"clusterIP":"10.0.0.1","type":"NodePort"`, `"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]`, `"type":"NodePort"`},
		"none":            {`"clusterIP":"None"`, `"clusterIP":"None","clusterIPs":["None"]`, `"clusterIP":"None"`},
		"a port": {
			`"ports":[{"nodePort":30080,"port":80},{"nodePort":30443,"port":443}]`, `"ports":[{"nodePort":30080,"port":8080}]`,
			`"ports":[{"port":80},{"nodePort":30443,"port":443}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := func(spec string) string {
				return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{` + spec + `}}`
			}
			live := &unstructured.Unstructured{}
			if err := live.UnmarshalJSON([]byte(body(test.live))); err != nil {
				t.Fatal(err)
			}
			got, err := withoutAllocated([]byte(body(test.service)), live)
			if want := body(test.want); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%v\n%s, want\n%s", err, got, want)
			}
		})
	}
}
