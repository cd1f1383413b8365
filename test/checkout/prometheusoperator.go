package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const prometheusOperator = "github.com/prometheus-operator/prometheus-operator"

// PrometheusOperator returns the CustomResourceDefinitions of the kinds that deploy has for the
// Prometheus Operator, as YAML documents: those of the release that test/prometheusoperator
// pins.
func PrometheusOperator(ctx context.Context) ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	find := exec.CommandContext(ctx, "go", "mod", "download", "-json", prometheusOperator)
	find.Dir = filepath.Join(root, "test", "prometheusoperator")
	find.Env = append(find.Environ(), "GOWORK=off")
	out, err := find.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		return nil, fmt.Errorf("find the module of the Prometheus Operator: %w", err)
	}
	var documents []string
	for _, kind := range []string{"prometheusrules", "servicemonitors"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			return nil, err
		}
		documents = append(documents, string(text))
	}
	return documents, nil
}
