variable "stage" {
  type        = string
  description = "The name of the deployment. It is part of the name of every resource, so it can never change."

  validation {
    condition     = can(regex("^[a-z0-9-]{1,19}$", var.stage)) && !can(regex("^(bounded-)?code(-|$)", var.stage))
    error_message = "stage must be 1 to 19 characters of a-z, 0-9 and -, and not begin with code or bounded-code."
  }
}

variable "code_bucket" {
  type        = string
  description = "A bucket in this region for the zips of the functions. Turn on its versioning."
}

variable "parameters" {
  type        = map(string)
  default     = {}
  description = "The parameters of docs/configuration.md. A parameter that you leave out has its default."
  nullable    = false

  validation {
    condition     = length(setintersection(keys(var.parameters), ["stage", "codeBucket", "codePrefix"])) == 0
    error_message = "Set stage and code_bucket as variables of the module."
  }
}

variable "release" {
  type        = string
  default     = null
  description = "The folder of the release. The default is the release that contains the module."
}

variable "service_role_arn" {
  type        = string
  default     = null
  description = "The CloudFormation service role (ServiceRoleArn of bounded-deployer.json)."
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "The tags of every resource."
}
