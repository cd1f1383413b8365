package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// An object is one manifest: as a file of a repository, and encoded as an apply request.
type object struct {
	kind, name string
	path       string // at the API server
	file       string // in the repository
	yaml       string
	json       []byte
}

// mix returns a Namespace and n-1 objects in it: nine of ten are ConfigMaps of about a
// kilobyte, the tenth is a Deployment.
func mix(namespace string, n int) []object {
	list := []object{newObject("", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	})}
	for i := 1; i < n; i++ {
		if i%10 == 0 {
			list = append(list, deployment(namespace, i))
		} else {
			list = append(list, configMap(namespace, i, "first"))
		}
	}
	return list
}

func configMap(namespace string, i int, version string) object {
	data := map[string]any{"version": version}
	for k := range 20 {
		data[fmt.Sprintf("key-%02d", k)] = fmt.Sprintf("value %d of %d, and some more of it to be read", k, i)
	}
	return newObject("configmaps", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": fmt.Sprintf("config-%04d", i), "namespace": namespace},
		"data":     data,
	})
}

func deployment(namespace string, i int) object {
	name := fmt.Sprintf("app-%04d", i)
	labels := map[string]any{"app": name}
	return newObject("deployments", map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": labels},
		"spec": map[string]any{
			"replicas": 0,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "image": "registry.example.com/app:1.0", "args": []any{"--listen=:8080"},
					"ports":     []any{map[string]any{"name": "http", "containerPort": 8080}},
					"resources": map[string]any{"requests": map[string]any{"cpu": "50m", "memory": "64Mi"}},
				}}},
			},
		},
	})
}

// newObject encodes a manifest in all its forms. resource is empty for a Namespace.
func newObject(resource string, o map[string]any) object {
	meta := o["metadata"].(map[string]any)
	out := object{kind: o["kind"].(string), name: meta["name"].(string)}
	prefix := "/api/"
	if version := o["apiVersion"].(string); strings.Contains(version, "/") {
		prefix = "/apis/"
	}
	out.path = prefix + o["apiVersion"].(string) + "/namespaces/" + out.name
	if resource != "" {
		out.path = prefix + o["apiVersion"].(string) + "/namespaces/" + meta["namespace"].(string) + "/" + resource + "/" + out.name
	}
	out.file = "apps/" + strings.ToLower(out.kind) + "-" + out.name + ".yaml"
	var err error
	if out.json, err = json.Marshal(o); err != nil {
		panic("bench: " + err.Error()) // strings and numbers can always be encoded
	}
	text, err := yaml.JSONToYAML(out.json)
	if err != nil {
		panic("bench: " + err.Error())
	}
	out.yaml = string(text)
	return out
}

// marked returns the same objects with the label and the annotations that gitfleet adds: byte
// for byte what it sends.
func marked(list []object, fleetName string) []object {
	out := slices.Clone(list)
	for i, o := range out {
		var content map[string]any
		if err := json.Unmarshal(o.json, &content); err != nil {
			panic("bench: " + err.Error()) // we encoded it
		}
		meta := content["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		meta["labels"] = merge(labels, map[string]any{"gitfleet.dev/managed-by": fleetName})
		meta["annotations"] = map[string]any{
			"gitfleet.dev/placement": "crp/" + fleetName,
			"gitfleet.dev/source":    "https://git.example.com/platform/fleet.git",
			"gitfleet.dev/commit":    "38d09a9f5d0a29f5bcc7fdce47c7a8f279651f4c",
			"gitfleet.dev/path":      o.file,
		}
		var err error
		if out[i].json, err = json.Marshal(content); err != nil {
			panic("bench: " + err.Error())
		}
	}
	return out
}

// merge returns the union of two maps; a may be nil.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(b)
	maps.Copy(out, a)
	return out
}

// files returns a repository that places the objects of one namespace on some members, all at
// once: the speed of a rollout is not measured.
func files(namespace string, members []string, list []object) map[string]string {
	out := map[string]string{"placement.yaml": `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: ` + namespace + `
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: ` + namespace + `}
  policy: {placementType: PickAll}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 100%}
`}
	for _, m := range members {
		out["clusters/"+m+".yaml"] = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata:\n  name: " + m + "\n"
	}
	for _, o := range list {
		out[o.file] = o.yaml
	}
	return out
}
