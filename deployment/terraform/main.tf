terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  release  = coalesce(var.release, "${path.module}/..")
  template = "${local.release}/template.json"
  zips     = fileset("${local.release}/functions", "*.zip")
  known    = jsondecode(file(local.template)).Parameters
  unknown  = setsubtract(keys(var.parameters), keys(local.known))

  # The fixed parameters that a plan checks. A change would move callers to other records, or shut them out.
  fixed = [
    "auth", "jwtIssuer", "jwtAudience", "jwtNamespaceClaim", "leasesTable", "waitersTable", "commitsTable", "nameserviceTable", "bucket",
    "commitProtocol", "pointerAttributes",
  ]
  identity = { for name in local.fixed : name => lookup(var.parameters, name, local.known[name].Default) }

  api    = aws_cloudformation_stack.this.outputs["HttpApiId"]
  invoke = "arn:${data.aws_partition.this.partition}:execute-api:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:${local.api}/$default"
}

# A plan that changes one of these values is refused. To change one on purpose, first run
# `terraform state rm 'module.holdfast.terraform_data.identity'`.
resource "terraform_data" "identity" {
  input            = local.identity
  triggers_replace = local.identity

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_object" "zip" {
  for_each    = local.zips
  bucket      = var.code_bucket
  key         = "holdfast/${each.value}"
  source      = "${local.release}/functions/${each.value}"
  source_hash = filemd5("${local.release}/functions/${each.value}")

  # The stack needs its zips until the update is complete, and for a rollback.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket = var.code_bucket
  # Terraform compares only the URL, so a new release must have a new key.
  key    = "holdfast/template-${filesha256(local.template)}.json"
  source = local.template

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "this" {
  name         = "holdfast-${var.stage}"
  template_url = "https://s3.${data.aws_region.this.name}.${data.aws_partition.this.dns_suffix}/${var.code_bucket}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  iam_role_arn = var.service_role_arn
  tags         = var.tags

  parameters = merge(var.parameters, {
    stage      = var.stage
    codeBucket = var.code_bucket
    codePrefix = "holdfast/"
  })

  # No update may delete or replace a table or the bucket.
  policy_body = jsonencode({
    Statement = [
      { Effect = "Allow", Principal = "*", Action = "Update:*", Resource = "*" },
      {
        Effect    = "Deny"
        Principal = "*"
        Action    = ["Update:Delete", "Update:Replace"]
        Resource = [
          for table in ["LeasesTable", "WaitersTable", "CommitsTable", "NameserviceTable", "Bucket"] :
          "LogicalResourceId/${table}"
        ]
      },
    ]
  })

  depends_on = [aws_s3_object.zip, terraform_data.identity]

  timeouts {
    create = "60m"
    update = "60m"
  }

  lifecycle {
    prevent_destroy = true

    precondition {
      condition     = length(local.zips) > 0
      error_message = "${local.release} is not a release of Holdfast: its folder functions has no zips."
    }
    precondition {
      condition     = length(local.unknown) == 0
      error_message = "The release does not have the parameters ${join(", ", local.unknown)}."
    }
    postcondition {
      condition     = local.identity["leasesTable"] == "" || self.outputs["LeasesTableName"] == local.identity["leasesTable"]
      error_message = "The stack does not use the table that the parameter leasesTable names."
    }
  }
}
