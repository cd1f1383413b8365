package settings

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/test/golden"
)

// chartSchema is the schema of the Helm chart's values.
const chartSchema = "../../../deploy/helm/gitfleet/values.schema.json"

// The schema of the Helm chart's values has exactly the settings of the configuration in
// config, so that a misspelt setting is refused before anything is installed.
func TestChartKnowsAllSettings(t *testing.T) {
	text, err := os.ReadFile(chartSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	config := objectSchema()
	for _, s := range cfg.settings() {
		within, path := config, strings.Split(s.key, ".")
		for _, name := range path[:len(path)-1] {
			properties := within["properties"].(map[string]any)
			if properties[name] == nil {
				properties[name] = objectSchema()
			}
			within = properties[name].(map[string]any)
		}
		value := schemaOf(s.value)
		value["description"] = s.usage
		within["properties"].(map[string]any)[path[len(path)-1]] = value
	}
	source := config["properties"].(map[string]any)["source"].(map[string]any)
	source["required"] = []string{"url"}
	source["properties"].(map[string]any)["url"].(map[string]any)["minLength"] = 1
	config["required"] = []string{"source"}
	schema["properties"].(map[string]any)["config"] = config
	var want bytes.Buffer
	out := json.NewEncoder(&want)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(schema); err != nil {
		t.Fatal(err)
	}
	golden.File(t, chartSchema, want.String())
}

func objectSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

// schemaOf returns the schema of a setting's value in the configuration file.
func schemaOf(value any) map[string]any {
	switch value.(type) {
	case *bool:
		return map[string]any{"type": "boolean"}
	case *int, *int64:
		return map[string]any{"type": "integer"}
	case *string, *metav1.Duration:
		return map[string]any{"type": "string"}
	case *size, *portion:
		return map[string]any{"type": []string{"integer", "string"}}
	case *KindModes:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string", "enum": []string{revertDrift, proposeDrift, reportDrift}}}
	case *[]string, *[]signedPath, *[]hostAccess, *[]gateServer:
		return map[string]any{"type": "array"}
	}
	return map[string]any{}
}
