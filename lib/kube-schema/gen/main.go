// Prints the shapes of the built-in API types as Go encodes them: the source of src/table/builtin.txt.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"go.yaml.in/yaml/v2"

	admreg "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var roots = []any{
	core.Pod{}, core.Node{}, core.Namespace{}, core.Service{}, core.Endpoints{}, core.Event{}, core.ConfigMap{},
	core.Secret{}, core.ServiceAccount{}, core.PersistentVolumeClaim{}, core.PersistentVolume{}, core.Binding{},
	core.PodTemplate{}, core.ReplicationController{}, core.LimitRange{}, core.ResourceQuota{},
	apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, apps.DaemonSet{}, apps.ControllerRevision{},
	batch.Job{}, batch.CronJob{}, coordination.Lease{}, discovery.EndpointSlice{}, events.Event{},
	policy.PodDisruptionBudget{}, policy.Eviction{}, autoscaling.Scale{}, autoscaling.HorizontalPodAutoscaler{},
	autoscalingv2.HorizontalPodAutoscaler{},
	rbac.Role{}, rbac.ClusterRole{}, rbac.RoleBinding{}, rbac.ClusterRoleBinding{},
	scheduling.PriorityClass{}, node.RuntimeClass{}, storage.StorageClass{}, storage.CSINode{}, storage.VolumeAttachment{}, storage.CSIDriver{},
	admreg.MutatingWebhookConfiguration{}, admreg.ValidatingWebhookConfiguration{},
	apiext.CustomResourceDefinition{}, authn.TokenReview{}, authn.TokenRequest{}, authz.SubjectAccessReview{},
	authz.SelfSubjectAccessReview{}, meta.DeleteOptions{}, meta.Status{}, meta.ObjectMeta{},
}

var seen = map[reflect.Type]bool{}
var lines = map[string][]string{}

// Types whose JSON form is their own.
var scalars = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                      "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                 "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                  "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                  "any",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                   "any",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                  "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                "intorstring",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                  "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps":       "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "any",
}

func full(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func name(t reflect.Type) string {
	p := t.PkgPath()
	p = strings.TrimPrefix(p, "k8s.io/api/")
	p = strings.TrimPrefix(p, "k8s.io/apimachinery/pkg/apis/")
	p = strings.TrimPrefix(p, "k8s.io/apiextensions-apiserver/pkg/apis/")
	return p + "." + t.Name()
}

func kind(t reflect.Type) string {
	if s, ok := scalars[full(t)]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + kind(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Name() != "" {
			return "[]" + kind(t.Elem())
		}
		return "[]" + kind(t.Elem())
	case reflect.Map:
		return "{}" + kind(t.Elem())
	case reflect.Struct:
		visit(t)
		return name(t)
	}
	if t.PkgPath() != "" {
		return t.Kind().String() + ":" + t.String()
	}
	return t.Kind().String()
}

// The schema of server-side apply. It is published as text in client-go only.
var merge = func() schema.Schema {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "applyconfigurations/internal/internal.go")
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "typed.YAMLObject(`")
	body, _, _ := strings.Cut(rest, "`)")
	var out schema.Schema
	if err := yaml.Unmarshal([]byte(body), &out); err != nil {
		log.Fatal(err)
	}
	return out
}()

// How server-side apply merges a field, where it is not by default: lists that are atomic and maps that are not.
func topology(t reflect.Type, field string) string {
	if name(t) == "apiextensions/v1.CustomResourceDefinitionStatus" && field == "conditions" {
		// its schema is not published with the others
		return " list=type"
	}
	of := strings.ReplaceAll(name(t), "/", ".")
	if strings.HasPrefix(of, "meta.") {
		of = "apimachinery.pkg.apis." + of
	} else {
		of = "api." + of
	}
	owner, _ := merge.FindNamedType("io.k8s." + of)
	if owner.Map == nil {
		return ""
	}
	found, has := owner.Map.FindField(field)
	atom, known := merge.Resolve(found.Type)
	switch {
	case !has || !known:
		return ""
	case atom.Map != nil && atom.List == nil && atom.Map.ElementRelationship == schema.Atomic:
		return " atomic"
	case atom.List != nil && atom.Map == nil && atom.List.ElementRelationship == schema.Associative:
		keys := []string{}
		item, _ := merge.Resolve(atom.List.ElementType)
		for _, key := range atom.List.Keys {
			if f, ok := item.Map.FindField(key); ok && f.Default != nil && f.Default != "" && f.Default != 0 {
				key += fmt.Sprintf("=%v", f.Default)
			}
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return " set"
		}
		if item.Map.ElementRelationship == schema.Atomic {
			return " leaves=" + strings.Join(keys, ",")
		}
		return " list=" + strings.Join(keys, ",")
	}
	return ""
}

func visit(t reflect.Type) {
	if seen[t] {
		return
	}
	seen[t] = true
	lines[name(t)] = fields(t, "")
}

// What is not in protobuf: kind and version travel beside the object.
const absent = "-"

// The number of a field in protobuf, below those of the structs it is embedded in.
func number(f reflect.StructField, outer string) string {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 || outer == absent {
		return absent
	}
	if outer == "" {
		return tag[1]
	}
	return outer + "." + tag[1]
}

func fields(t reflect.Type, outer string) []string {
	var out []string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "" && f.Anonymous {
			out = append(out, fields(f.Type, number(f, outer))...)
			continue
		}
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		line := " " + tag[0] + " " + kind(f.Type)
		if n := number(f, outer); n != absent {
			line += " #" + n
		}
		for _, flag := range tag[1:] {
			if flag == "omitempty" || flag == "omitzero" {
				line += " " + flag
			}
		}
		if s := f.Tag.Get("patchStrategy"); s != "" {
			line += " strategy=" + s
		}
		if s := f.Tag.Get("patchMergeKey"); s != "" {
			line += " key=" + s
		}
		line += topology(t, tag[0])
		out = append(out, line)
	}
	return out
}

func main() {
	for _, r := range roots {
		visit(reflect.TypeOf(r))
	}
	var names []string
	for n := range lines {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintln(os.Stdout, n)
		for _, l := range lines[n] {
			fmt.Fprintln(os.Stdout, l)
		}
	}
}
