package member

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
)

// secrets returns the Secrets that the cluster should have. They are collected at most once in
// a turn.
func (s *session) secrets() diff.Secrets {
	if s.hidden != nil {
		return *s.hidden
	}
	var all []*unstructured.Unstructured
	for id, w := range s.wanted.all() {
		if id.Group == "" && id.Kind == "Secret" {
			all = append(all, w.manifest.Object.Object)
		}
	}
	found := diff.SecretsOf(all...)
	s.hidden = &found
	return found
}

// unquoted returns the message of an object's status without what it may quote of Secrets: the
// messages of controllers and operators are not under our control.
func (s *session) unquoted(id api.ID, message string) string {
	if message == "" || pods.IsWorkload(id.GroupKind()) && !strings.Contains(message, ": ") {
		return message
	}
	return pods.Scrub(message, s.secrets())
}
