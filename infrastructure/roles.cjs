/**
 * A plugin of the framework that gives each function its own role. Without it, all functions would share one. The role has the
 * `iamRoleStatements` of the function, and may write the log of the function and receive from its queues.
 */
module.exports = class Roles {
  constructor(framework) {
    framework.configSchemaHandler.defineFunctionProperties('aws', {
      properties: { iamRoleStatements: { $ref: '#/definitions/awsIamPolicyStatements' } },
    });
    this.hooks = { 'before:package:finalize': () => addRoles(framework) };
  }
};

function addRoles({ service, providers }) {
  const { Resources } = service.provider.compiledCloudFormationTemplate;
  const { naming } = providers.aws;
  const sharedId = naming.getRoleLogicalId();
  const roleIds = new Map();
  for (const name of service.getAllFunctions()) {
    const own = service.getFunction(name);
    const lambdaId = naming.getLambdaLogicalId(name);
    const roleId = `${naming.getNormalizedFunctionName(name)}${sharedId}`;
    const role = structuredClone(Resources[sharedId]);
    role.Properties.Policies[0].PolicyDocument.Statement = [
      mayLog(naming.getLogGroupName(own.name)),
      ...mayReceive(own.events),
      ...own.iamRoleStatements,
    ];
    role.Properties.RoleName['Fn::Join'][1].splice(2, 0, name);
    Resources[roleId] = { ...role, Properties: { ...role.Properties, ManagedPolicyArns: [] } };
    const lambda = Resources[lambdaId];
    lambda.Properties.Role['Fn::GetAtt'][0] = roleId;
    lambda.DependsOn = [roleId, ...lambda.DependsOn.filter((id) => id !== sharedId)];
    roleIds.set(lambdaId, roleId);
  }
  for (const resource of Object.values(Resources))
    if (resource.Type === 'AWS::Lambda::EventSourceMapping')
      // Lambda refuses the mapping if the role may not yet receive from the queue.
      resource.DependsOn = roleIds.get(resource.Properties.FunctionName['Fn::GetAtt'][0]);
}

const mayLog = (logGroup) => ({
  Effect: 'Allow',
  Action: ['logs:CreateLogStream', 'logs:CreateLogGroup', 'logs:PutLogEvents'],
  Resource: [{ 'Fn::Sub': `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:${logGroup}:*:*` }],
});

function mayReceive(events) {
  const queues = events.flatMap(({ sqs }) => (sqs ? [sqs.arn ?? sqs] : []));
  if (queues.length === 0) return [];
  return [
    {
      Effect: 'Allow',
      Action: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'],
      Resource: queues,
    },
  ];
}
