package deletion

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// obstacles are the conditions that say why a terminating object still exists, if they are True, by
// kind.
var obstacles = map[api.GroupKind][]string{
	{Kind: "Namespace"}: {
		"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
		"NamespaceContentRemaining", "NamespaceFinalizersRemaining",
	},
	definitions: {"Terminating"},
}

// Explains reports whether terminating objects of a kind have conditions that say why they still
// exist.
func Explains(kind api.GroupKind) bool { return obstacles[kind] != nil }

// Stays reads a terminating object, and returns why it still exists according to its conditions; empty
// if they do not say.
func Stays(ctx context.Context, conn *connection.Conn, res connection.Resource, id api.ID) (string, error) {
	live, err := conn.Read(ctx, res, id)
	if err != nil || live == nil {
		return "", err
	}
	return why(live), nil
}

func why(live *unstructured.Unstructured) string {
	var texts []string
	for _, typ := range obstacles[api.IDOf(live).GroupKind()] {
		condition := health.TrueCondition(live, typ)
		if condition == nil {
			continue
		}
		message, _ := condition["message"].(string)
		texts = append(texts, strings.TrimSuffix(typ+": "+message, ": "))
	}
	return strings.Join(texts, "; ")
}
