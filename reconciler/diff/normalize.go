package diff

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Normalize converts an object to the form in which an API server stores it, so that hashes,
// ownership and comparisons refer to the same fields: the stringData of a Secret becomes data,
// and data becomes canonical base64. Invalid data is kept, so that the server refuses it. Fields
// that belong to controllers are left out, and so are fields of Kubernetes' own kinds that are not set: those that are null,
// and empty ones for which a server has a default.
// The result shares all other fields with the object, and is the object itself if nothing changes.
func Normalize(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = controllers.Strip(o)
	if api.BuiltInGroup(o.GroupVersionKind().Group) {
		if fields, changed := withoutUnset(o.Object, append(make([]string, 0, 16), o.GetKind())); changed {
			o = &unstructured.Unstructured{Object: fields.(map[string]any)}
		}
	}
	if !isSecret(o.Object) {
		return o
	}
	data, ok := texts(o.Object["data"])
	written, okWritten := texts(o.Object["stringData"])
	if !ok || !okWritten {
		return o
	}
	merged := make(map[string]any, len(data)+len(written))
	same := len(written) == 0
	for key, value := range data {
		merged[key] = canonical(value)
		same = same && merged[key] == value
	}
	if same {
		return o
	}
	for key, value := range written {
		merged[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	normal := maps.Clone(o.Object)
	delete(normal, "stringData")
	normal["data"] = merged
	return &unstructured.Unstructured{Object: normal}
}

// withoutUnset returns a value without the fields that are not set, and whether it had any. A null field is not set, but an
// apply of it owns the field, and so keeps what a server has set in it before: a probe that becomes null would stay, with its
// defaults and without its handler. An empty value that a server replaces by a default would differ from it for ever, and as the
// key of a list item, such as protocol, would add the item again with each apply. Keys that users choose and schemas stay as they
// are. path has the kind and the fields above.
func withoutUnset(v any, path []string) (any, bool) {
	if last := path[len(path)-1]; keyValueFields[last] || last == "stringData" || last == "openAPIV3Schema" {
		return v, false
	}
	switch v := v.(type) {
	case map[string]any:
		var fields map[string]any // a copy, once there is a difference
		for name, field := range v {
			below := append(path, name)
			kept, changed := withoutUnset(field, below)
			unset := field == nil || isZero(field) && hasDefault(below)
			if !unset && !changed {
				continue
			}
			if fields == nil {
				fields = maps.Clone(v)
			}
			if fields[name] = kept; unset {
				delete(fields, name)
			}
		}
		if fields != nil {
			return fields, true
		}
	case []any:
		var items []any
		for i, item := range v {
			kept, changed := withoutUnset(item, path)
			if !changed {
				continue
			}
			if items == nil {
				items = slices.Clone(v)
			}
			items[i] = kept
		}
		if items != nil {
			return items, true
		}
	}
	return v, false
}

// isZero reports whether a value is the empty text, zero or an empty list.
func isZero(v any) bool {
	list, isList := v.([]any)
	return v == "" || v == int64(0) || v == float64(0) || isList && len(list) == 0
}

// hasDefault reports whether a server replaces an empty value of a field by a default.
func hasDefault(path []string) bool {
	text := strings.Join(path, ".")
	return slices.ContainsFunc(defaulted, func(field string) bool { return strings.HasSuffix(text, field) })
}

// defaulted are the fields in which an API server stores a default in place of an empty value, as of a missing one: the ends of
// their paths, which begin with the kind. Where an empty value is a value of its own, such as in storageClassName, it is not listed.
var defaulted = slices.Concat(
	fieldsIn([]string{".containers.", ".initContainers."}, "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "ports.protocol"),
	fieldsIn([]string{".livenessProbe.", ".readinessProbe.", ".startupProbe."}, "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
	fieldsIn([]string{"Pod.spec.", ".template.spec."}, "restartPolicy", "dnsPolicy", "schedulerName"),
	fieldsIn([]string{"Pod.spec."}, "serviceAccountName", "serviceAccount"),
	fieldsIn([]string{"."}, "httpGet.path", "httpGet.scheme", "fieldRef.apiVersion", "iscsi.iscsiInterface", "rbd.pool", "rbd.user", "rbd.keyring"),
	fieldsIn([]string{"Service.spec."}, "type", "clusterIP", "clusterIPs", "ipFamilies", "sessionAffinity", "externalTrafficPolicy", "healthCheckNodePort",
		"ports.protocol", "ports.targetPort", "ports.nodePort"),
	fieldsIn([]string{"RoleBinding.", "ClusterRoleBinding."}, "roleRef.apiGroup", "subjects.apiGroup"),
	[]string{
		"Deployment.spec.strategy.type", "StatefulSet.spec.updateStrategy.type", "StatefulSet.spec.podManagementPolicy", "DaemonSet.spec.updateStrategy.type",
		"CronJob.spec.concurrencyPolicy", "HorizontalPodAutoscaler.spec.metrics", "NetworkPolicy.spec.policyTypes", "Secret.type",
		"PersistentVolume.spec.persistentVolumeReclaimPolicy", "PersistentVolumeClaim.spec.volumeName",
		"CustomResourceDefinition.spec.names.singular", "CustomResourceDefinition.spec.names.listKind",
	},
)

// fieldsIn returns the paths of fields that are in any of several others.
func fieldsIn(above []string, fields ...string) (paths []string) {
	for _, a := range above {
		for _, f := range fields {
			paths = append(paths, a+f)
		}
	}
	return paths
}

// texts returns a map of strings; ok is false for another type. Null is an empty map, and a
// null value the empty string.
func texts(v any) (pairs map[string]string, ok bool) {
	if v == nil {
		return nil, true
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	pairs = make(map[string]string, len(m))
	for key, value := range m {
		switch value := value.(type) {
		case string:
			pairs[key] = value
		case nil:
			pairs[key] = ""
		default:
			return nil, false
		}
	}
	return pairs, true
}

// canonical returns base64 on one line, as a server writes it.
func canonical(encoded string) string {
	clear, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return encoded
	}
	return base64.StdEncoding.EncodeToString(clear)
}

// keyValueFields are maps with arbitrary keys. If empty they are not stored, unlike empty
// objects such as emptyDir.
var keyValueFields = map[string]bool{
	"annotations": true, "binaryData": true, "data": true, "labels": true, "limits": true,
	"matchLabels": true, "nodeSelector": true, "parameters": true, "requests": true, "selector": true,
}

// normalized copies a JSON value so that equal values are equal in Go: null fields are left
// out, and integers are int64, however they were written.
func normalized(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, field := range v {
			if field != nil {
				m[key] = normalized(field)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = normalized(item)
		}
		return l
	case float64:
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v)
		}
		return v
	default:
		return v
	}
}

func emptied(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}
