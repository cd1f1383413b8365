package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// outputs are the ways to write things that Kubernetes knows.
const outputs = "table, wide, json, yaml, name or jsonpath=TEMPLATE"

// jsonPathPrefix begins an output by template.
const jsonPathPrefix = "jsonpath="

// checkOutput refuses what writeDocument does not know, before anybody is asked.
func checkOutput(output string) error {
	if template, ok := strings.CutPrefix(output, jsonPathPrefix); ok {
		_, err := parsePath(template)
		return err
	}
	switch output {
	case "table", "wide", "json", "yaml", "name":
		return nil
	}
	return fmt.Errorf("-o %s: use %s", output, outputs)
}

// parsePath reads a template as kubectl does; braces around a single path may be
// left out.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	if template == "" {
		return nil, errors.New("-o jsonpath=: write a template, such as jsonpath='{.metadata.name}'")
	}
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(template); err != nil {
		return nil, fmt.Errorf("-o jsonpath=%s: %w", template, err)
	}
	return p, nil
}

// writeDocument writes an object or a list of objects.
func writeDocument(w io.Writer, doc any, output string) error {
	switch output {
	case "json":
		return writeJSON(w, doc)
	case "yaml":
		raw, err := yaml.Marshal(doc)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	if template, ok := strings.CutPrefix(output, jsonPathPrefix); ok {
		p, err := parsePath(template)
		if err != nil {
			return err
		}
		if err := p.Execute(w, plain); err != nil {
			return fmt.Errorf("-o %s: %w", output, err)
		}
		return nil
	}
	return writeNames(w, plain)
}

// writeNames writes kind.group/name for each object, as kubectl does.
func writeNames(w io.Writer, doc map[string]any) error {
	items, isList := doc["items"].([]any)
	if !isList {
		items = []any{doc}
	}
	for _, i := range items {
		o := unstructured.Unstructured{Object: i.(map[string]any)}
		kind := o.GroupVersionKind().GroupKind()
		if _, err := fmt.Fprintf(w, "%s/%s\n", strings.ToLower(kind.String()), o.GetName()); err != nil {
			return err
		}
	}
	return nil
}
