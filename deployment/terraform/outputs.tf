output "endpoint" {
  description = "The value of HOLDFAST_ENDPOINT."
  value       = aws_cloudformation_stack.this.outputs["ApiUrl"]
}

output "outputs" {
  description = "Every output of the stack."
  value       = aws_cloudformation_stack.this.outputs
}

output "worker_resources" {
  description = "For each namespace of the parameter namespaces, and for the whole deployment as \"\": the resources of a policy that allows execute-api:Invoke for leases, permits and once."
  value = {
    for namespace in toset(concat([""], compact(split(",", lookup(var.parameters, "namespaces", ""))))) : namespace => [
      for route in ["GET %s/leases", "POST %s/leases/acquire", "POST %s/leases/heartbeat", "POST %s/leases/release", "POST %s/leases/withdraw", "GET %s/once", "POST %s/once/begin", "POST %s/once/complete"] :
      "${local.invoke}/${replace(format(route, namespace == "" ? "/v1" : "/v1/ns/${namespace}"), " ", "")}"
    ]
  }
}
