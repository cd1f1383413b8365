package api

import (
	"strings"
	"testing"
)

// Kinds have the article with which they are spoken, acronyms too.
func TestWithArticle(t *testing.T) {
	for _, want := range []string{
		"an Ingress", "an APIService", "an HTTPRoute", "an SSHKey", "an UpdateRun", "an UnboundPolicy", "an int",
		"a ConfigMap", "a HorizontalPodAutoscaler", "a NATGateway", "a PVC", "a UserAccount", "a Unit", "a uint", "a Secret",
	} {
		_, kind, _ := strings.Cut(want, " ")
		if got := WithArticle(kind); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
