import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Annotations, Stack, Token, Validations } from 'aws-cdk-lib';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { Asset } from 'aws-cdk-lib/aws-s3-assets';
import { type IStateMachine, StateMachine } from 'aws-cdk-lib/aws-stepfunctions';
import { CfnInclude } from 'aws-cdk-lib/cloudformation-include';
import { Construct } from 'constructs';
import type { HoldfastParameters } from './parameters.ts';

export type { HoldfastParameters } from './parameters.ts';

/** The parameters of docs/configuration.md. A parameter that you leave out has its default. */
export interface HoldfastProps extends HoldfastParameters {
  /**
   * The folder of the release.
   * @default the release that contains this construct
   */
  readonly release?: string;
}

interface Template {
  Parameters: Record<string, { Default?: string }>;
  Resources: Record<string, { Type: string; Properties: { Code?: { S3Key: unknown } } }>;
}

/** `POST` or `GET`, and the path after `/v1/` or `/v1/ns/<namespace>/`. */
type Route = `${'GET' | 'POST'} ${string}`;

const LEASES: Route[] = [
  'GET leases',
  ...(['acquire', 'heartbeat', 'release', 'withdraw'] as const).map((verb): Route => `POST leases/${verb}`),
];
const ONCE: Route[] = ['GET once', 'POST once/begin', 'POST once/complete'];
const RATES: Route[] = ['GET rates', 'POST rates/reserve', 'POST rates/settle'];
const COMMITS: Route[] = ['GET commits', 'POST commits', 'POST uploads'];
const NAMESERVICE: Route[] = ['GET nameservice', 'POST nameservice/publish'];

/** The parameters are literal, so all conditions are constant, and CDK's validation reports each. Versions without `Validations` do not validate. */
const CONSTANT_CONDITIONS = ['W1028', 'W8003', 'W9052', 'W9053'];

const NAMESPACE = /^[a-z0-9][a-z0-9-]{0,31}$/;

/**
 * A deployment of Holdfast. A stack can contain only one, because the template keeps its logical ids. The zips of the functions are assets of the app,
 * so the environment must be bootstrapped.
 * @example
 * const holdfast = new Holdfast(stack, 'Holdfast', { stage: 'prod', namespaces: 'team-a' });
 * holdfast.grantAcquire(worker, 'team-a');
 */
export class Holdfast extends Construct {
  /** The URL for `HOLDFAST_ENDPOINT`. */
  readonly apiUrl: string;
  /** The id of the HTTP API. */
  readonly apiId: string;
  /** The included template, to reach its resources and outputs. */
  readonly template: CfnInclude;
  private readonly usesTokens: boolean;
  private readonly namespaces: string[];

  constructor(scope: Construct, id: string, props: HoldfastProps) {
    super(scope, id);
    const { release = join(__dirname, '..'), ...given } = props;
    this.usesTokens = props.auth === 'jwt';
    this.namespaces = props.namespaces?.split(',') ?? [];
    const templateFile = join(release, 'template.json');
    const { Parameters, Resources }: Template = JSON.parse(readFileSync(templateFile, 'utf8'));
    const zips = Object.entries(Resources).flatMap(([function_, { Type, Properties }]) => {
      const [zip] = /[^}"]+\.zip/.exec(JSON.stringify(Properties.Code?.S3Key ?? '')) ?? [];
      return Type === 'AWS::Lambda::Function' && zip ? [{ function_, zip }] : [];
    });
    const defaults = Object.entries(Parameters).flatMap(([name, { Default }]) =>
      Default === undefined ? [] : [[name, Default]],
    );
    const values = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]));
    // This bucket is never read, because the code of each function is replaced below.
    const parameters = { ...Object.fromEntries([...defaults, ...values]), codeBucket: 'assets', codePrefix: '' };
    this.template = new CfnInclude(this, 'Template', { templateFile, parameters });
    for (const { function_, zip } of zips) {
      const { s3BucketName: s3Bucket, s3ObjectKey: s3Key } = new Asset(this, function_, {
        path: join(release, 'functions', zip),
      });
      const resource = this.template.getResource(function_) as CfnFunction;
      resource.code = { s3Bucket, s3Key };
      // CDK's validation rejects the empty list of subnets, even though the template uses it only under a condition.
      if (!given.vpcSubnetIds) resource.vpcConfig = undefined;
    }
    for (const rule of CONSTANT_CONDITIONS)
      Validations?.of(Stack.of(this)).acknowledge({
        id: `CloudFormation-Validate::${rule}`,
        reason: 'parameters are literal',
      });
    // CDK warns from 0.8 MB on, but CloudFormation accepts 1 MB, and a third of what CDK writes is indentation.
    Annotations.of(Stack.of(this)).acknowledgeWarning('@aws-cdk/core:Stack.templateSize');
    this.apiUrl = this.template.getOutput('ApiUrl').value;
    this.apiId = this.template.getOutput('HttpApiId').value;
  }

  /**
   * Lets a role acquire, extend, release and read leases and permits.
   * @param namespace the namespace in which the role may call. Without one, the whole deployment
   */
  grantAcquire(grantee: IGrantable, namespace?: string): Grant {
    return this.grant(grantee, [...LEASES, ...ONCE, ...RATES], namespace);
  }

  /** Lets a role commit objects, stage uploads and read commits. @param namespace as for `grantAcquire` */
  grantCommit(grantee: IGrantable, namespace?: string): Grant {
    return this.grant(grantee, COMMITS, namespace);
  }

  /** Lets a role publish to the nameservice, and read it. @param namespace as for `grantAcquire` */
  grantPublish(grantee: IGrantable, namespace?: string): Grant {
    return this.grant(grantee, NAMESERVICE, namespace);
  }

  /**
   * The state machine `exclusive`. Start it with EventBridge Scheduler, in a task, or from a role that you grant `grantStartExecution`.
   * @param namespace one of the parameter `namespaces`. Without one, the state machine of the whole deployment
   * @example
   * new StepFunctionsStartExecution(holdfast.exclusive(), { input });
   */
  exclusive(namespace?: string): IStateMachine {
    const position = namespace === undefined ? 0 : this.namespaces.indexOf(namespace) + 1;
    if (namespace !== undefined && position === 0)
      throw new Error(`the parameter namespaces does not name ${namespace}`);
    const id = position === 0 ? 'ExclusiveStateMachine' : `Namespace${position}Exclusive`;
    const existing = this.node.tryFindChild(id) as IStateMachine | undefined;
    return existing ?? StateMachine.fromStateMachineArn(this, id, this.template.getResource(id).ref);
  }

  /** Every segment is literal, because in IAM a `*` also matches slashes, and could match the path of another namespace. */
  private grant(grantee: IGrantable, routes: Route[], namespace?: string): Grant {
    if (this.usesTokens) throw new Error('With auth: "jwt", scopes decide who may call: see docs/authorization.md');
    if (namespace !== undefined && (Token.isUnresolved(namespace) || !NAMESPACE.test(namespace)))
      throw new Error('namespace must be a literal of 1 to 32 characters of a-z, 0-9 and -');
    const root = namespace === undefined ? '/v1' : `/v1/ns/${namespace}`;
    const resourceArns = routes.map((route) => {
      const [method, path] = route.split(' ');
      const resourceName = `$default/${method}${root}/${path}`;
      return Stack.of(this).formatArn({ service: 'execute-api', resource: this.apiId, resourceName });
    });
    return Grant.addToPrincipal({ grantee, actions: ['execute-api:Invoke'], resourceArns });
  }
}
