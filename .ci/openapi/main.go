// Command openapi prints the OpenAPI definitions of the types in placement/api and of what they refer to, as the JSON that
// reconciler/server/kubeapi embeds: an object of schemas by the name of the Go type. A reference is the name of another type.
// The Go code that it runs is written by openapi-gen; see go:generate in that package.
package main

import (
	"encoding/json"
	"log"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// ourTypes is the Go package of gitfleet's kinds.
const ourTypes = "github.com/gitfleet/gitfleet/placement/api."

func main() {
	definitions := GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(name) })
	fix(definitions)
	schemas := map[string]spec.Schema{}
	for name, d := range definitions {
		schemas[name] = d.Schema
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	if err := out.Encode(schemas); err != nil {
		log.Fatal(err)
	}
}

// fix corrects JSON fields that the generator declares as bytes.
func fix(definitions map[string]common.OpenAPIDefinition) {
	object := spec.MapProperty(nil)
	object.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	for _, name := range []string{"ClusterResourceEnvelope", "ResourceEnvelope"} {
		data := definitions[ourTypes+name].Schema.Properties["data"]
		data.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: object}
		definitions[ourTypes+name].Schema.Properties["data"] = data
	}
	value := definitions[ourTypes+"JSONPatchOverride"].Schema.Properties["value"]
	anything := spec.Schema{SchemaProps: spec.SchemaProps{Description: value.Description}}
	anything.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	definitions[ourTypes+"JSONPatchOverride"].Schema.Properties["value"] = anything
}
