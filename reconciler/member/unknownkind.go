package member

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
)

// unknownKind returns why a kind is not known. If its definition is placed here too, the kind
// only has to wait for the definition.
func (s *session) unknownKind(gvk schema.GroupVersionKind) error {
	err := s.kinds.Why(gvk)
	var none *discovery.MissingDefinition
	if !errors.As(err, &none) {
		return err
	}
	if by := s.definition(gvk); by != nil {
		if t := s.trouble[by.manifest.ID]; t != nil && t.cond.Status != metav1.ConditionTrue || s.works.reports(by.placement) || s.works.spared(by.placement, by.manifest.ID) != "" {
			return fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not applied: see why there", none.NoMatch, by.manifest.ID.Name, by.placement)
		}
		return &pendingDefinition{fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not established yet; it is applied as soon as it is", none.NoMatch, by.manifest.ID.Name, by.placement)}
	}
	return err
}

// A pendingDefinition says that a kind waits until its definition, which is placed on the
// cluster too, is established.
type pendingDefinition struct{ error }

// Unwrap returns the error of the API server.
func (c *pendingDefinition) Unwrap() error { return c.error }

// definition returns the desired definition of a kind on this cluster; nil if there is none.
func (s *session) definition(gvk schema.GroupVersionKind) *wanted {
	for id, w := range s.wanted.all() {
		if id.GroupKind() == discovery.Definitions && discovery.Defines(w.manifest.Object.Object, gvk) {
			return &w
		}
	}
	return nil
}

// definitionEstablished records that a definition was established, or that an established one
// has changed. The definition's name ends with its group.
func (s *session) definitionEstablished(definition api.ID) {
	if s.established == nil {
		s.established = map[string]bool{}
	}
	_, group, _ := strings.Cut(definition.Name, ".")
	s.established[group] = true
}
