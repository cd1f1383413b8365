package document

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
)

// IsOwnKind reports whether a document is of one of gitfleet's kinds.
func IsOwnKind(root *yaml.Node) bool {
	version, _ := Find(root, (*FieldPath)(nil).Child("apiVersion"))
	if version == nil {
		return false
	}
	group, _, hasVersion := strings.Cut(version.Value, "/")
	return hasVersion && IsOwnGroup(group)
}

// IsOwnGroup reports whether an API group is that of gitfleet's kinds.
func IsOwnGroup(group string) bool {
	return group == api.PlacementGroup || group == api.ClusterGroup || group == api.OverlayGroup
}

// Describe describes the type of a value, never the value.
func Describe(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	}
	return fmt.Sprintf("a %T", v)
}
